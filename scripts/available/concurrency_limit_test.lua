test("gives the slot back when the request has ended", function(t)
  t.config { limiter = "exports" }
  t.toml "[limiter.exports]\nconcurrency = 1"
  for _ = 1, 3 do
    t.equal(t.request({}).status, 200)
  end
end)

test("wants a limiter with slots", function(t)
  t.config { limiter = "rated" }
  t.toml '[limiter.rated]\nrate = "1/s"'
  t.equal(t.request({}).status, 500)
  t.config { limiter = "nobody" }
  t.contains(t.refused(), 'there is no limiter "nobody"')
end)
