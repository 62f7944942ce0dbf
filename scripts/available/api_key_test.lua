-- Digests of "key-of-acme" and "key-of-bob".
local acme = "sha256:689febd264f8b977e29c0fdb75f839eb248ba07d1561b14f2b95f42756943245"
local bob = "sha256:808a1d81b5de08d72083995df738947d519d230a20c236003268f0f4b65ee475"

local function request(t, key)
  return t.request { headers = { ["X-Api-Key"] = key, ["X-User-Tier"] = "platinum" } }
end

test("tells the upstream whose key it is", function(t)
  t.config { keys = { acme = { hash = acme, tier = "gold" }, bob = { hash = bob } } }
  local res = request(t, "key-of-acme")
  t.equal(res.status, 200)
  t.equal(res.forwarded.headers["X-User-Id"], "acme")
  t.equal(res.forwarded.headers["X-User-Tier"], "gold")
  t.equal(res.forwarded.headers["X-Api-Key"], nil)
  t.equal(request(t, "key-of-bob").forwarded.headers["X-User-Tier"], nil)
end)

test("lets nobody in without a key that is known", function(t)
  t.config { keys = { acme = { hash = acme } }, realm = "orders" }
  local res = t.request {}
  t.equal(res.status, 401)
  t.contains(res.body, '"message":"missing API key"')
  t.equal(res.headers["WWW-Authenticate"], 'ApiKey realm="orders"')
  t.contains(request(t, "key-of-eve").body, '"message":"API key invalid"')
end)

test("lets a key into its own routes alone", function(t)
  t.config { keys = { acme = { hash = acme, routes = { "elsewhere" } }, bob = { hash = bob, routes = { "test" } } } }
  t.equal(request(t, "key-of-acme").status, 403)
  t.equal(request(t, "key-of-bob").status, 200)
end)

test("reads keys from lines of JSON", function(t)
  t.config { key_lines = '{"user":"acme","hash":"' .. acme .. '"}\n', query = "key" }
  t.equal(t.request({ path = "/?key=key-of-acme" }).status, 200)
  t.equal(request(t, "key-of-acme").status, 401)
end)

test("is refused with a key that is no hash", function(t)
  t.config { keys = { acme = { hash = "key-of-acme" } } }
  t.contains(t.refused(), "filter.api_key.keys")
  t.config {}
  t.contains(t.refused(), "no key")
  t.config { keys = { acme = { hash = acme, role = "x" } } }
  t.contains(t.refused(), "keys.acme.role")
end)

test("asks Redis for keys that are not listed", function(t)
  t.config { redis = "main" }
  t.contains(t.refused(), "there is no [redis.main]")
  t.toml('[redis.main]\naddress = "127.0.0.1:1"\ntimeout = "20ms"')
  t.equal(request(t, "key-of-acme").status, 503) -- nobody answers there
end)
