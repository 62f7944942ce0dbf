local nowhere = "http://127.0.0.1:1/introspect"

test("lets nobody in without a token", function(t)
  t.config { url = nowhere }
  local res = t.request {}
  t.equal(res.status, 401)
  t.equal(res.headers["WWW-Authenticate"], 'Bearer realm="api"')
end)

test("lets nobody in while nobody can tell", function(t)
  t.config { url = nowhere, client_id = "gateway", client_secret = "secret" }
  local res = t.request { headers = { Authorization = "Bearer t" } }
  t.equal(res.status, 503)
  t.equal(res.forwarded, nil)
end)

test("is refused without an address", function(t)
  t.config { url = "id.example.com" }
  t.contains(t.refused(), "filter.introspection.url")
  t.config {}
  t.contains(t.refused(), "is required")
end)
