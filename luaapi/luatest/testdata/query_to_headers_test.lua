test("moves the query into headers", function(t)
  local f = t.request({ path = "/a?x=1&long+name=two%20words" }).forwarded
  t.equal(f.headers["X-Query-Param-x"], "1")
  t.equal(f.headers["X-Query-Param-long-name"], "two words")
  t.equal(f.query, "")
end)

test("lets nobody break out of a header", function(t)
  local res = t.request { path = "/?x=a%0d%0aSet-Cookie:%20p=1" }
  t.equal(res.status, 500)
  t.equal(res.forwarded, nil)
  t.contains(res.error, "header X-Query-Param-x")
end)
