local function statuses(t, n, request)
  local seen = {}
  for i = 1, n do
    seen[i] = t.request(request).status
  end
  return seen
end

test("lets the burst through, and then so many as the rate says", function(t)
  t.config { rate = "5/s", burst = 3 }
  t.equal(statuses(t, 4, {}), { 200, 200, 200, 429 })
  t.sleep(0.4)
  t.equal(statuses(t, 3, {}), { 200, 200, 429 })
end)

test("says how long to wait, and waiting so long is enough", function(t)
  t.config { rate = "6/m", burst = 1 }
  t.request {}
  local res = t.request {}
  t.equal(res.status, 429)
  t.equal(res.headers["Retry-After"], "10")
  t.equal(res.headers["RateLimit-Limit"], "1")
  t.equal(res.headers["RateLimit-Remaining"], "0")
  t.contains(res.body, '"message":"too many requests"')
  t.equal(res.forwarded, nil)
  t.sleep(10)
  t.equal(t.request({}).status, 200)
end)

test("tells in the form that is asked for", function(t)
  local function refusal(headers)
    t.config { rate = "6/m", burst = 2, headers = headers }
    t.request {}
    t.request {}
    return t.request({}).headers
  end
  t.equal(refusal("x")["X-RateLimit-Remaining"], "0")
  t.equal(refusal("draft")["RateLimit-Policy"], '"test/rate_limit";q=2;w=20')
  t.equal(refusal("draft")["RateLimit"], '"test/rate_limit";r=0;t=10')
  t.equal(refusal("none")["RateLimit-Limit"], nil)
  t.equal(refusal("none")["Retry-After"], "10")
end)

test("counts by the calendar", function(t)
  t.config { limiter = "daily" }
  t.toml '[limiter.daily]\nquota = "2/day"'
  t.equal(statuses(t, 3, {}), { 200, 200, 429 })
  t.sleep(24 * 3600)
  t.equal(statuses(t, 3, {}), { 200, 200, 429 })
end)

test("passes what the second limiter has left", function(t)
  t.config { limiter = "both" }
  t.toml '[limiter.a]\nrate = "2/m"\n[limiter.b]\nrate = "3/m"\n[limiter.both]\nfirst = ["a", "b"]'
  t.equal(statuses(t, 6, {}), { 200, 200, 200, 200, 200, 429 })
end)

test("counts each client for itself", function(t)
  t.config { rate = "1/s" }
  t.equal(statuses(t, 2, { client_ip = "192.0.2.1" }), { 200, 429 })
  t.equal(statuses(t, 2, { client_ip = "192.0.2.2" }), { 200, 429 })
end)

test("counts by a header, and without it by the client", function(t)
  t.config { rate = "1/s", key = "header:X-Key" }
  t.equal(t.request({ headers = { ["X-Key"] = "a" } }).status, 200)
  t.equal(t.request({ headers = { ["X-Key"] = "b" } }).status, 200)
  t.equal(t.request({ headers = { ["X-Key"] = "a" } }).status, 429)
  t.equal(statuses(t, 2, {}), { 200, 429 })
end)

test("counts everybody together when told so", function(t)
  t.config { rate = "1/s", key = "global" }
  t.equal(t.request({ client_ip = "192.0.2.1" }).status, 200)
  t.equal(t.request({ client_ip = "192.0.2.2" }).status, 429)
end)

test("shares a named limiter", function(t)
  t.config { limiter = "partners" }
  t.toml '[limiter.partners]\nrate = "1/m"'
  t.equal(statuses(t, 2, {}), { 200, 429 })
end)

test("is refused without a rate", function(t)
  t.contains(t.refused(), 'wants rate = "5/s"')
  t.config { limiter = "nobody" }
  t.contains(t.refused(), 'there is no limiter "nobody"')
  t.config { rate = "1/s", key = "owner" }
  t.contains(t.refused(), 'filter.rate_limit.key: "owner" is no kind of key')
  t.config { rate = 0 }
  t.contains(t.refused(), "filter.rate_limit.rate")
end)
