package luatest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

var luaBlock = regexp.MustCompile("(?s)```lua\n(.*?)```")

func TestTheExampleInTheReadmeWorks(t *testing.T) {
	text, err := os.ReadFile("../../scripts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := luaBlock.FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("the README has %d pieces of Lua, want a filter, the functions that work on chunks, and the filter's test", len(blocks))
	}
	runExample(t, string(blocks[0][1]), string(blocks[2][1]))
	runExample(t, `local M = { stage = "transform", config = { most = "integer" } }
`+string(blocks[1][1])+"return M", `test("caps and masks", function(t)
		t.config { most = 10 }
		t.answer { body = "card 1234-5678" }
		t.equal(t.request { method = "POST", body = "short" }.body, "card ****-****")
		t.equal(t.request { method = "POST", body = "longer than ten" }.status, 413)
	end)`)
}

func TestTheExampleOfATestWorks(t *testing.T) {
	text, err := os.ReadFile("../../docs/lua/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := luaBlock.FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d pieces of Lua, want a whole test", len(blocks))
	}
	runExample(t, `local M = { stage = "transform", config = { customers = { "string", required = true } } }
function M.on_response(res, ctx, conf)
  local order = assert(res:json())
  local customer = assert(gw.cache.get_or("customer:" .. order.customer_id, 60, function()
    return assert(gw.http.get { upstream = conf.customers, path = "/customers/" .. order.customer_id }):json()
  end))
  order.customer = customer.name
  res:set_body(gw.json.encode(order))
end
return M`, string(blocks[0][1]))
}

func TestTestsHaveWhatNeedsNoRequest(t *testing.T) {
	runExample(t, `return { stage = "transform", on_request = function(req)
  req:set_body(gw.json.encode({ mac = gw.crypto.base64_encode(gw.crypto.hmac("sha256", "key", req.path)), none = gw.json.null, list = gw.json.array {} }))
end }`, `test("signs", function(t)
  local doc, err = gw.json.decode(t.request({ path = "/a" }).forwarded.body)
  t.equal(err, nil)
  t.equal(gw.crypto.base64_decode(doc.mac), gw.crypto.hmac("sha256", "key", "/a"))
  t.ok(doc.none == gw.json.null)
  t.equal(gw.json.encode(doc.list), "[]")
  t.equal(gw.re.match("/a", "^/(\\w+)")[1], "a")
  t.ok(gw.path.match({ "/a/*" }, "/a/b") and gw.ip.match({ "10.0.0.0/8" }, "10.1.2.3"))
  t.equal(gw.url.parse("http://a.example/b").host, "a.example")
  t.equal(gw.cookie.parse("a=1; b=2").b, "2")
  t.equal(gw.time.format(0), "1970-01-01T00:00:00Z")
  t.equal(#gw.uuid.v4(), 36)
  t.equal(gw.limit, nil)
end)`)
}

func runExample(t *testing.T, script, test string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"example.lua": script, "example_test.lua": test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results, err := luatest.RunFile(filepath.Join(dir, "example_test.lua"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%d tests, %v", len(results), err)
	}
	if results[0].Err != nil {
		t.Error(results[0].Err)
	}
}

func TestAFailingTestSaysWhere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"f.lua":      `return { stage = "transform", on_request = function(req) return gw.respond(418) end }`,
		"f_test.lua": "test('first', function(t)\n  t.equal(t.request({}).status, 200)\nend)\ntest('second', function(t)\n  t.equal(t.request({}).status, 418)\nend)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results, err := luatest.RunFile(filepath.Join(dir, "f_test.lua"))
	if err != nil || len(results) != 2 || results[0].Err == nil || results[1].Err != nil {
		t.Fatalf("%+v, %v", results, err)
	}
	if want := "f_test.lua:2: got 418, want 200"; results[0].Err.Error() != want {
		t.Errorf("%v, want %s", results[0].Err, want)
	}
}

func TestAFailingTestSaysWhyItsRequestFailed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"f.lua": `return { stage = "transform", on_request = function(req)
  if req.path == "/bad" then error("no good") end
end }`,
		"f_test.lua": `test("breaks", function(t) t.equal(t.request({ path = "/bad" }).status, 200) end)
test("differs", function(t) t.equal(t.request({}).status, 201) end)`,
		"g.lua":      `return { stage = "transform" }`,
		"g_test.lua": "t.toml([[\n[[upstream]]\nname = 'a'\n]])",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results, err := luatest.RunFile(filepath.Join(dir, "f_test.lua"))
	if err != nil || len(results) != 2 {
		t.Fatalf("%+v, %v", results, err)
	}
	if cause := results[0].Cause; cause == nil || !strings.Contains(cause.Error(), "f.lua:2: no good") {
		t.Errorf("the cause is %v", cause)
	}
	if cause := results[1].Cause; cause != nil {
		t.Errorf("nothing failed, and the cause is %v", cause)
	}
	_, err = luatest.RunFile(filepath.Join(dir, "g_test.lua"))
	if err == nil || !strings.HasPrefix(err.Error(), "g_test.lua:3: syntax error") || !strings.Contains(err.Error(), "[=[ ]=]") {
		t.Errorf("a text that ends too early: %v", err)
	}
}
