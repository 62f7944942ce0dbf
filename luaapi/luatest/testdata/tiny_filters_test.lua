test("does what its settings say and overwrites nothing", function(t)
  t.config { query_to_header = { key = "X-Key", other = "X-Other" }, copy = { Host = "X-Host" }, random_path = "/r/" }
  local f = t.request({ path = "/?key=1&other=2", headers = { ["X-Other"] = "kept" } }).forwarded
  t.equal(f.headers["X-Key"], "1")
  t.equal(f.headers["X-Other"], "kept")
  t.equal(f.headers["X-Host"], "example.com")
  t.ok(f.path:match("^/r/%x%x%x%x%x%x%x%x$"), f.path)
end)
