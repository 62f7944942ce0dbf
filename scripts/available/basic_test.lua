local users = "tom:$2a$04$ECZ1q8TMYGTK7ifxxf3d5eq7jk6qu5dHuKIoNV0/vxEKI3fXBD3Ye\n" -- hunter2

local function request(t, pair)
  return t.request { headers = { Authorization = pair and "Basic " .. pair } }
end

test("tells the upstream who it is, and no password", function(t)
  t.config { users = users }
  local res = request(t, "dG9tOmh1bnRlcjI=") -- tom:hunter2
  t.equal(res.status, 200)
  t.equal(res.forwarded.headers["X-User-Id"], "tom")
  t.equal(res.forwarded.headers["Authorization"], nil)
end)

test("does not tell what was wrong", function(t)
  t.config { users = users, realm = "orders" }
  for _, pair in ipairs { "dG9tOmh1bnRlcjM=", "Ym9iOmh1bnRlcjI=", "dG9t", "x" } do
    local res = request(t, pair)
    t.equal(res.status, 401)
    t.contains(res.body, '"message":"wrong user or password"')
    t.equal(res.headers["WWW-Authenticate"], 'Basic realm="orders", charset="UTF-8"')
  end
  t.contains(request(t, nil).body, '"message":"authentication required"')
end)

test("is refused with passwords that stand there in plain", function(t)
  t.config { users = "tom:hunter2" }
  t.contains(t.refused(), "line 1: the hash of tom is neither bcrypt nor argon2")
end)
