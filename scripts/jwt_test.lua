local secret = ("s"):rep(32)

local function request(t, token, path)
  return t.request { path = path or "/api/user", headers = token and { Authorization = "Bearer " .. token } or {} }
end

test("tells the upstream who is calling", function(t)
  t.config { secret = secret }
  local res = request(t, t.token(secret, { sub = "tom", role = "admin" }))
  t.equal(res.status, 200)
  t.equal(res.forwarded.headers["X-User-Id"], "tom")
  t.equal(res.forwarded.headers["X-User-Role"], "admin")
end)

test("lets nobody in without a token", function(t)
  t.config { secret = secret }
  local res = request(t, nil)
  t.equal(res.status, 401)
  t.contains(res.body, '"message":"missing bearer token"')
  t.contains(res.headers["WWW-Authenticate"], "Bearer")
  t.equal(res.forwarded, nil)
end)

test("refuses a token that was changed", function(t)
  t.config { secret = secret }
  local token = t.token(secret, { sub = "tom" })
  for _, wrong in ipairs { token .. "x", token:sub(1, -2), "x" .. token, t.token(("x"):rep(32), { sub = "tom" }), "a b" } do
    local res = request(t, wrong)
    t.equal(res.status, 401)
    t.contains(res.body, '"message":"token invalid"')
  end
end)

test("refuses an expired token, and says so", function(t)
  t.config { secret = secret }
  local res = request(t, t.token(secret, { sub = "tom" }, -60))
  t.equal(res.status, 401)
  t.contains(res.body, '"message":"token expired"')
end)

test("accepts clocks that differ by the leeway", function(t)
  t.config { secret = secret, leeway = "2m" }
  t.equal(request(t, t.token(secret, { sub = "tom" }, -60)).status, 200)
end)

test("needs no token on the paths that are skipped", function(t)
  t.config { secret = secret, skip = { "/api/login", "/public/**" } }
  t.equal(request(t, nil, "/api/login").status, 200)
  t.equal(request(t, nil, "/public/a/b").status, 200)
  t.equal(request(t, nil, "/api/login/x").status, 401)
end)

test("takes away what clients say about themselves", function(t)
  t.config { secret = secret, skip = { "/**" } }
  local res = t.request { headers = { ["X-User-Id"] = "root" } }
  t.equal(res.forwarded.headers["X-User-Id"], nil)
end)

test("is refused with a secret that is too short, or none", function(t)
  t.config { secret = "short" }
  t.contains(t.refused(), "filter.jwt.secret")
  t.config {}
  t.ok(t.refused())
end)

test("joins several roles", function(t)
  t.config { secret = secret }
  local res = request(t, t.token(secret, { sub = "tom", role = { "admin", "ops" } }))
  t.equal(res.forwarded.headers["X-User-Role"], "admin,ops")
end)

test("refuses a token whose subject could name nobody or break a header", function(t)
  t.config { secret = secret }
  for _, sub in ipairs { "", "tom\r\nX-Admin: 1", "a\0b" } do
    t.equal(request(t, t.token(secret, { sub = sub })).status, 401)
  end
end)

test("wants what the claims must say", function(t)
  t.config {
    secret = secret,
    claims = { role = { "admin", "ops" }, scope = { contains = "orders:read" }, ["org.tier"] = { matches = "^g" } },
  }
  local good = { sub = "tom", role = "ops", scope = "orders:read users:read", org = { tier = "gold" } }
  t.equal(request(t, t.token(secret, good)).status, 200)
  for name, value in pairs { role = "user", scope = "orders", org = { tier = "iron" } } do
    local claims = { sub = "tom", role = good.role, scope = good.scope, org = good.org }
    claims[name] = value
    local res = request(t, t.token(secret, claims))
    t.equal(res.status, 403)
    t.contains(res.body, '"message":"not allowed"')
    t.contains(res.headers["WWW-Authenticate"], 'error="insufficient_scope"')
  end
end)

test("makes headers of claims, which clients cannot", function(t)
  t.config { secret = secret, headers = { ["X-Tenant"] = "org.id", ["X-Teams"] = "teams" }, user = "email" }
  local res = t.request {
    headers = {
      Authorization = "Bearer " .. t.token(secret, { sub = "7", email = "tom@example.com", org = { id = 42 }, teams = { "a", "b" } }),
      ["X-Tenant"] = "1",
    },
  }
  t.equal(res.forwarded.headers["X-User-Id"], "tom@example.com")
  t.equal(res.forwarded.headers["X-Tenant"], "42")
  t.equal(res.forwarded.headers["X-Teams"], "a,b")
end)

test("refuses tokens that were taken back", function(t)
  t.config { secret = secret, revoked_ids = { "7\n8\n" } }
  t.equal(request(t, t.token(secret, { sub = "tom", jti = "8" })).status, 401)
  t.equal(request(t, t.token(secret, { sub = "tom", jti = "9" })).status, 200)
end)

test("takes keys of a set", function(t)
  local key = "c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M" -- the secret, as base64url
  t.config { jwks = '{"keys":[{"kty":"oct","k":"' .. key .. '","alg":"HS256"}]}' }
  t.equal(request(t, t.token(secret, { sub = "tom" })).status, 200)
  t.equal(request(t, t.token(("x"):rep(32), { sub = "tom" })).status, 401)
end)

test("knows several issuers", function(t)
  local other = ("o"):rep(32)
  t.config { issuers = { { issuer = "https://a.example", secret = secret }, { issuer = "https://b.example", secret = other } } }
  t.equal(request(t, t.token(secret, { sub = "tom", iss = "https://a.example" })).status, 200)
  t.equal(request(t, t.token(other, { sub = "tom", iss = "https://b.example" })).status, 200)
  t.equal(request(t, t.token(other, { sub = "tom", iss = "https://a.example" })).status, 401)
end)
