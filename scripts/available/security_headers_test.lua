test("adds what is missing and leaves what the upstream has set", function(t)
  t.answer { headers = { ["X-Frame-Options"] = "SAMEORIGIN", Server = "demo/1.0" } }
  local res = t.request {}
  t.equal(res.headers["X-Frame-Options"], "SAMEORIGIN")
  t.equal(res.headers["X-Content-Type-Options"], "nosniff")
  t.equal(res.headers["Server"], nil)
end)

test("adds what it is told to", function(t)
  t.config { headers = { ["X-Own"] = "1" }, remove = {} }
  local res = t.request {}
  t.equal(res.headers["X-Own"], "1")
  t.equal(res.headers["X-Frame-Options"], nil)
end)
