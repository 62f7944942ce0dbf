test("changes the request's lines", function(t)
  t.config { remove = { "X-Debug" }, set = { ["X-Tenant"] = "acme" }, add = { ["X-Hop"] = "gw", ["X-New"] = "1" } }
  local res = t.request { headers = { ["x-debug"] = "1", ["x-tenant"] = "evil", ["X-Hop"] = "edge", ["X-Kept"] = "1" } }
  t.equal(res.forwarded.headers["X-Debug"], nil)
  t.equal(res.forwarded.headers["X-Tenant"], "acme")
  t.equal(res.forwarded.headers["X-Hop"], "edge") -- the first of two lines
  t.equal(res.forwarded.headers["X-New"], "1")
  t.equal(res.forwarded.headers["X-Kept"], "1")
end)

test("changes the answer's lines", function(t)
  t.config { answer_remove = { "Server" }, answer_set = { ["Cache-Control"] = "no-store" }, answer_add = { Vary = "X-Tenant", ["X-New"] = "1" } }
  t.answer { headers = { Server = "demo/1.0", ["Cache-Control"] = "public", Vary = "Accept" } }
  local res = t.request {}
  t.equal(res.headers["Server"], nil)
  t.equal(res.headers["Cache-Control"], "no-store")
  t.equal(res.headers["Vary"], "Accept") -- the first of two lines
  t.equal(res.headers["X-New"], "1")
end)

test("without settings nothing changes", function(t)
  t.answer { headers = { ["X-A"] = "1" } }
  local res = t.request { headers = { ["X-B"] = "2" } }
  t.equal(res.headers["X-A"], "1")
  t.equal(res.forwarded.headers["X-B"], "2")
end)
