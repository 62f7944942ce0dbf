test("speaks v2 with the upstream and v1 with the client", function(t)
  t.answer(function(forwarded)
    t.equal(forwarded.path, "/v2/users")
    t.equal(forwarded.body, '{"id":12345678901234567890,"full_name":"tom"}')
    return { body = forwarded.body, headers = { ETag = '"1"' } }
  end)
  local res = t.request { method = "POST", path = "/v1/users", body = '{"name":"tom","id":12345678901234567890}' }
  t.equal(res.status, 200)
  t.equal(res.body, '{"id":12345678901234567890,"name":"tom"}')
  t.equal(res.headers["ETag"], nil)
end)

test("leaves new clients alone", function(t)
  t.answer { body = '{"full_name":"tom"}' }
  t.equal(t.request({ path = "/v2/users" }).body, '{"full_name":"tom"}')
end)
