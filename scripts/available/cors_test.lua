local origin = "https://app.example.com"

test("answers a preflight without asking the upstream", function(t)
  t.config { origins = { origin } }
  local res = t.request { method = "OPTIONS", headers = { Origin = origin, ["Access-Control-Request-Method"] = "PUT" } }
  t.equal(res.status, 204)
  t.equal(res.forwarded, nil)
  t.equal(res.headers["Access-Control-Allow-Origin"], origin)
  t.contains(res.headers["Access-Control-Allow-Methods"], "PUT")
  t.equal(res.headers["Access-Control-Max-Age"], "600")
end)

test("marks answers for the origins that are allowed, and no others", function(t)
  t.config { origins = { origin }, credentials = true, expose = { "X-Total" } }
  local res = t.request { headers = { Origin = origin } }
  t.equal(res.headers["Access-Control-Allow-Origin"], origin)
  t.equal(res.headers["Access-Control-Allow-Credentials"], "true")
  t.equal(res.headers["Access-Control-Expose-Headers"], "X-Total")
  res = t.request { headers = { Origin = "https://evil.example" } }
  t.equal(res.headers["Access-Control-Allow-Origin"], nil)
  t.equal(res.headers["Vary"], "Origin")
  t.equal(t.request({}).headers["Access-Control-Allow-Origin"], nil)
end)

test("passes an OPTIONS that is no preflight", function(t)
  t.config { origins = { "*" } }
  local res = t.request { method = "OPTIONS" }
  t.equal(res.forwarded.method, "OPTIONS")
end)

test("is refused with settings that browsers refuse", function(t)
  t.config { origins = { "*" }, credentials = true }
  t.contains(t.refused(), "name the origins")
end)
