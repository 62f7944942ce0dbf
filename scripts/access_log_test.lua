test("writes one line for each request, whatever became of it", function(t)
  t.equal(#t.request({ path = "/a" }).lines, 1)
  t.answer { status = 503 }
  t.equal(t.request({ path = "/a" }).lines, { "" })
end)

test("leaves out the paths that are skipped", function(t)
  t.config { skip = { "/health", "/static/**" } }
  t.equal(#t.request({ path = "/health" }).lines, 0)
  t.equal(#t.request({ path = "/static/css/a.css" }).lines, 0)
  t.equal(#t.request({ path = "/healthy" }).lines, 1)
end)

test("logs the headers that are asked for, and no secrets", function(t)
  t.config { headers = { "User-Agent", "Authorization" } }
  local res = t.request { headers = { ["User-Agent"] = 'curl "8"', Authorization = "Bearer secret" } }
  t.equal(res.lines, { [[,"headers":{"User-Agent":"curl \"8\"","Authorization":"***"}]] })
end)
