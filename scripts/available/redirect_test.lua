test("changes what is named and keeps the rest", function(t)
  t.config { scheme = "https" }
  local res = t.request { path = "/a%2Fb/c?x=%20&y", host = "gw.test:8080" }
  t.equal(res.status, 302)
  t.equal(res.headers["Location"], "https://gw.test/a%2Fb/c?x=%20&y")
  t.equal(res.forwarded, nil)

  t.config { host = "other.test", status = 308 }
  res = t.request { path = "/", host = "gw.test:8080" }
  t.equal(res.status, 308)
  t.equal(res.headers["Location"], "http://other.test/")

  t.config { port = 9000 }
  t.equal(t.request({ path = "/a", host = "gw.test" }).headers["Location"], "http://gw.test:9000/a")
end)

test("keeps the client's port, but for one that goes without saying", function(t)
  t.config { path = "/new" }
  t.equal(t.request({ path = "/old?x=1", host = "gw.test:8080" }).headers["Location"], "http://gw.test:8080/new?x=1")
  t.equal(t.request({ path = "/old", host = "[::1]:80" }).headers["Location"], "http://[::1]/new")
  t.equal(t.request({ path = "/old", host = "[::1]" }).headers["Location"], "http://[::1]/new")
end)

test("a path with a query of its own takes the client's place", function(t)
  t.config { path = "/new?from=old" }
  t.equal(t.request({ path = "/old?x=1", host = "gw.test" }).headers["Location"], "http://gw.test/new?from=old")
end)

test("a prefix is whole segments, and other paths go upstream", function(t)
  t.config { prefix = "/v1", to = "/v2/" }
  t.equal(t.request({ path = "/v1/orders/7?x=1", host = "gw.test" }).headers["Location"], "http://gw.test/v2/orders/7?x=1")
  t.equal(t.request({ path = "/v1", host = "gw.test" }).headers["Location"], "http://gw.test/v2")
  t.equal(t.request({ path = "/v1example", host = "gw.test" }).status, 200)
  t.config { prefix = "/old", to = "/" }
  t.equal(t.request({ path = "/old", host = "gw.test" }).headers["Location"], "http://gw.test/")
  t.equal(t.request({ path = "/old/a", host = "gw.test" }).headers["Location"], "http://gw.test/a")
end)

test("settings that lead nowhere are refused", function(t)
  for _, settings in ipairs({
    {},
    { status = 304, scheme = "https" },
    { prefix = "/a" },
    { path = "/a", prefix = "/b", to = "/c" },
    { host = "a/b" },
    { path = "relative" },
  }) do
    t.config(settings)
    assert(t.refused(), "they are not")
  end
end)
