test("tells what is left and takes nothing", function(t)
  t.config { limiter = "partners", style = "x" }
  t.toml '[limiter.partners]\nrate = "5/m"'
  for _ = 1, 3 do
    t.equal(t.request({}).headers["X-RateLimit-Remaining"], "5")
  end
  t.config { limiter = "partners", style = "draft" }
  t.equal(t.request({}).headers["RateLimit"], '"partners";r=5;t=0')
end)
