local browser = { Accept = "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8" }
local failure = { status = 503, headers = { ["Content-Type"] = "application/json" }, body = '{"message":"a <b> & c"}' }

test("shows browsers a page", function(t)
  t.answer(failure)
  local res = t.request { headers = browser }
  t.equal(res.status, 503)
  t.contains(res.headers["Content-Type"], "text/html")
  t.contains(res.body, "<p>a &lt;b&gt; &amp; c</p>")
  t.contains(res.body, "request-1")
end)

test("leaves programs their JSON", function(t)
  t.answer(failure)
  for _, accepted in ipairs { "application/json", "*/*", "text/html;q=0.5, application/json" } do
    t.equal(t.request({ headers = { Accept = accepted } }).body, failure.body)
  end
  t.equal(t.request({}).body, failure.body)
end)

test("leaves alone what is no error, or no JSON", function(t)
  t.answer { status = 200, headers = { ["Content-Type"] = "application/json" }, body = "{}" }
  t.equal(t.request({ headers = browser }).body, "{}")
  t.answer { status = 404, headers = { ["Content-Type"] = "text/plain" }, body = "gone" }
  t.equal(t.request({ headers = browser }).body, "gone")
end)
