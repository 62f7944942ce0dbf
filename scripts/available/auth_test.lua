local secret = ("s"):rep(32)

local function verifiers()
  return {
    office = { kind = "network", networks = { office = { "192.0.2.0/24" } } },
    tokens = { kind = "jwt", secret = secret, claims = { role = { "admin", "ops" } } },
  }
end

local function request(t, from, role)
  return t.request {
    client_ip = from,
    headers = role and { Authorization = "Bearer " .. t.token(secret, { sub = "tom", role = role }) } or {},
  }
end

test("lets in with any proof", function(t)
  t.config { verifiers = verifiers(), headers = { ["X-User-Role"] = "role" } }
  t.equal(request(t, "192.0.2.7").forwarded.headers["X-User-Id"], "office")
  local res = request(t, "198.51.100.1", "admin")
  t.equal(res.forwarded.headers["X-User-Id"], "tom")
  t.equal(res.forwarded.headers["X-User-Role"], "admin")
  t.equal(request(t, "198.51.100.1").status, 401)
  t.equal(request(t, "198.51.100.1", "user").status, 403)
end)

test("wants all proofs", function(t)
  t.config { verifiers = verifiers(), require = "all", of = { "tokens", "office" } }
  t.equal(request(t, "192.0.2.7", "ops").forwarded.headers["X-User-Id"], "tom")
  t.equal(request(t, "192.0.2.7").status, 401)
  t.equal(request(t, "198.51.100.1", "ops").status, 403)
end)

test("lets in who brings nothing, and no wrong proof", function(t)
  t.config { verifiers = verifiers(), require = "optional", of = { "tokens" }, anonymous = "guest" }
  t.equal(request(t, "198.51.100.1").forwarded.headers["X-User-Id"], "guest")
  t.equal(t.request({ headers = { Authorization = "Bearer x.y.z" } }).status, 401)
end)

test("asks nobody", function(t)
  t.config { verifiers = verifiers(), require = "none" }
  t.equal(t.request({ headers = { ["X-User-Id"] = "root" } }).forwarded.headers["X-User-Id"], nil)
end)

test("is refused with settings that nobody reads", function(t)
  for setting, wrong in pairs {
    ["verifiers.tokens.secrets"] = { tokens = { kind = "jwt", secret = secret, secrets = "x" } },
    ["verifiers.tokens.kind"] = { tokens = { kind = "jws" } },
    ["verifiers.tokens.secret"] = { tokens = { kind = "jwt", secret = "short" } },
  } do
    t.config { verifiers = wrong }
    t.contains(t.refused(), setting)
  end
  t.config { verifiers = verifiers(), of = { "keys" } }
  t.contains(t.refused(), 'there is no verifier "keys"')
end)
