package luatest_test

import (
	"os"
	"regexp"
	"testing"
)

var filterBlock = regexp.MustCompile("(?s)```lua\n-- scripts/\\w+\\.lua\n(.*?)```")

// The filters that docs/coming-from shows do what their pages say.
func TestTheFiltersForNewcomersWork(t *testing.T) {
	for page, test := range map[string]string{
		"nginx": `
  t.config { suffix = ".shop.example.com" }
  for _, host in ipairs { "acme.shop.example.com", "ACME.shop.example.com:8080" } do
    t.equal(t.request({ host = host, headers = { ["X-Tenant"] = "other" } }).forwarded.headers["X-Tenant"], "acme")
  end
  for _, host in ipairs { "acme.example.com", "a.b.shop.example.com", "shop.example.com" } do
    t.equal(t.request({ host = host }).status, 404, host)
  end`,
		"kong": `
  t.config { least = 3 }
  t.equal(t.request({ headers = { ["X-Client-Version"] = "3" } }).status, 200)
  for _, version in ipairs { "2", "x", "" } do
    local res = t.request { headers = { ["X-Client-Version"] = version } }
    t.equal(res.status, 400)
    t.equal(res.headers["X-Least-Version"], "3")
  end
  t.equal(t.request({}).status, 400)`,
		"envoy": `
  t.config { upstream = "canary" }
  t.calls(function(call)
    t.equal(call.path, "/session")
    if call.headers["Cookie"] == "s=1" then
      return { headers = { ["X-User"] = "tom" } }
    elseif call.headers["Cookie"] then
      return { status = 401 }
    end
    return nil, "refused"
  end)
  t.equal(t.request({ headers = { Cookie = "s=1", ["X-User-Id"] = "eve" } }).forwarded.headers["X-User-Id"], "tom")
  t.equal(t.request({ headers = { Cookie = "s=2" } }).status, 401)
  t.equal(t.request({}).status, 503)`,
		"skipper": `
  t.toml [=[
[[upstream]]
name = "users"
endpoints = ["http://127.0.0.1:9"]
[[upstream]]
name = "orders"
endpoints = ["http://127.0.0.1:9"]
]=]
  t.calls(function(call)
    if call.upstream == "users" then
      t.equal(call.path, "/users/a%2Fb")
      return { body = '{"name":"Ann"}' }
    end
    t.equal(call.query, "user=a%2Fb")
    return { body = "[1]" }
  end)
  local res = t.request { params = { user = "a%2Fb" } }
  t.equal(res.status, 200)
  t.equal(gw.json.decode(res.body), { profile = { name = "Ann" }, orders = { 1 } })`,
		"spring": `
  t.toml [=[
[[upstream]]
name = "express"
endpoints = ["http://127.0.0.1:9"]
]=]
  t.config { rate = "2/10s", burst = 2 }
  local function order(priority)
    return t.request { method = "POST", body = '{"priority":"' .. priority .. '"}' }
  end
  t.equal(order("high").forwarded.upstream, "express")
  t.equal(order("low").forwarded.upstream, "main")
  local res = order("low")
  t.equal(res.status, 429)
  t.equal(res.headers["Retry-After"], "5")
  t.sleep(5)
  t.equal(order("low").status, 200)`,
	} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile("../../docs/coming-from/" + page + ".md")
			if err != nil {
				t.Fatal(err)
			}
			block := filterBlock.FindSubmatch(text)
			if block == nil {
				t.Fatal("the page shows no filter")
			}
			runExample(t, string(block[1]), `test("as the page says", function(t)`+test+"\nend)")
		})
	}
}
