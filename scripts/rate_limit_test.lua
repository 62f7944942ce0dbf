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
