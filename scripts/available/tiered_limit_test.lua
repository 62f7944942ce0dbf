local function passed(t, request)
  local n = 0
  for _ = 1, 12 do
    if t.request(request).status == 200 then
      n = n + 1
    end
  end
  return n
end

test("each tier has its rate, and some paths cost more", function(t)
  t.config { limiter = "api", header = "X-Tier", costs = { ["/search"] = 5 } }
  t.toml '[limiter.api]\nrate = "2/m"\n[limiter.api.tiers]\ngold = { rate = "10/m", burst = 10 }'
  t.equal(passed(t, { client_ip = "192.0.2.1" }), 2)
  t.equal(passed(t, { client_ip = "192.0.2.2", headers = { ["X-Tier"] = "gold" } }), 10)
  t.equal(passed(t, { client_ip = "192.0.2.3", headers = { ["X-Tier"] = "gold" }, path = "/search" }), 2)
  t.equal(passed(t, { client_ip = "192.0.2.4", headers = { ["X-Tier"] = "lead" } }), 2)
end)
