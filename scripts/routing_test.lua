local rules = {
  { header = "X-Version", equals = "v2", upstream = "canary" },
  { json = "env", one_of = { "canary", "beta" }, upstream = "canary" },
}

test("follows the route when no rule fits", function(t)
  t.config { rules = rules }
  t.equal(t.request({}).forwarded.upstream, "main")
  t.equal(t.request({ headers = { ["X-Version"] = "v1" } }).forwarded.upstream, "main")
end)

test("chooses by a header", function(t)
  t.config { rules = rules }
  t.equal(t.request({ headers = { ["x-version"] = "v2" } }).forwarded.upstream, "canary")
end)

test("chooses by a field of a JSON body, and passes the body on", function(t)
  t.config { rules = rules }
  for body, upstream in pairs {
    ['{"env":"canary"}'] = "canary",
    ['{"env":"beta","x":[1,2]}'] = "canary",
    ['{"env":"live"}'] = "main",
    ['{"env":"canary"'] = "main",
    ["env=canary"] = "main",
  } do
    local res = t.request { method = "POST", body = body }
    t.equal(res.forwarded.upstream, upstream, body)
    t.equal(res.forwarded.body, body)
  end
end)

test("passes on a body that is too large to look into", function(t)
  t.config { rules = rules }
  local body = '{"env":"canary","x":"' .. ("x"):rep(2 ^ 20) .. '"}'
  local res = t.request { method = "POST", body = body }
  t.equal(res.forwarded.upstream, "main")
  t.equal(#res.forwarded.body, #body)
end)

test("takes the first rule that fits", function(t)
  t.config { rules = { { header = "X-A", equals = "1", upstream = "main" }, { header = "X-A", equals = "1", upstream = "canary" } } }
  t.equal(t.request({ headers = { ["X-A"] = "1" } }).forwarded.upstream, "main")
end)

test("does not choose by a user while there is none", function(t)
  t.config { rules = { { user = true, equals = "tom", upstream = "canary" } } }
  t.equal(t.request({}).forwarded.upstream, "main")
end)

test("is refused with a rule that cannot work", function(t)
  for rule, message in pairs {
    [{ header = "X-A", equals = "1", upstream = "nowhere" }] = "there is no upstream nowhere",
    [{ equals = "1", upstream = "main" }] = "rule 1 looks at nothing",
    [{ header = "X-A", upstream = "main" }] = "rule 1 compares with nothing",
  } do
    t.config { rules = { rule } }
    t.contains(t.refused(), message)
  end
end)
