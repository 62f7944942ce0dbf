test("lets nobody in while nobody can tell", function(t)
  t.config { url = "http://127.0.0.1:1/check" }
  local res = t.request { headers = { ["X-User-Id"] = "root" } }
  t.equal(res.status, 503)
  t.equal(res.forwarded, nil)
end)

test("is refused with a header that there cannot be", function(t)
  t.config { url = "http://127.0.0.1:1/check", take = { "X Role" } }
  t.contains(t.refused(), "X Role")
end)
