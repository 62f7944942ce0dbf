test("degrades the third and diverts the fifth", function(t)
  t.config { upstream = "canary" }
  local seen = {}
  for i = 1, 6 do
    local res = t.request { headers = { ["X-User"] = "tom" } }
    seen[i] = res.forwarded and res.forwarded.upstream .. (res.forwarded.headers["X-Risk"] or "") or res.body
  end
  t.equal(seen, { "main", "main", '{"degraded":true}', "main", "canary5", "canary6" })
  t.equal(t.request({ headers = { ["X-User"] = "ann" } }).forwarded.upstream, "main")
end)
