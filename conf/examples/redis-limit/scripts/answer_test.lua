test("answers with its text", function(t)
  t.config { text = "hello" }
  local res = t.request {}
  t.equal(res.status, 200)
  t.equal(res.body, "hello")
  t.equal(res.forwarded, nil)
end)
