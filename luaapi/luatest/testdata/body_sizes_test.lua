test("tells both sides how long the bodies are", function(t)
  t.answer { headers = { foo = "bar" }, body = "12345" }
  local res = t.request { method = "POST", body = "abc" }
  t.equal(res.forwarded.headers["request_body_size"], "3")
  t.equal(res.headers["response_body_size"], "5")
  t.equal(res.headers["foo"], nil)
  t.equal(t.request({}).forwarded.headers["request_body_size"], "0")
end)
