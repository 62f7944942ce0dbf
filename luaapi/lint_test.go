package luaapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/lint"
)

// findings lists what is found, as "line:column message".
func findings(source string) (list []string) {
	for _, f := range lint.Check(source, luaapi.Sight()) {
		list = append(list, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Message))
	}
	return list
}

func TestWhatAnAuthorDidNotMeanIsFound(t *testing.T) {
	for body, want := range map[string]string{
		`tonubmer("1")`:                         "3:1 global 'tonubmer' is not defined, it is always nil",
		`leak = 1`:                              "3:1 function sets global 'leak': that is an error after the script is loaded; write 'local leak'",
		`gw.jsn.decode("1")`:                    "3:4 gw has no 'jsn': it has ",
		`gw.json.decod("1")`:                    "3:9 gw.json has no 'decod': it has array, decode, encode, get, null",
		`local j = gw.json; j.decod("1")`:       "3:22 gw.json has no 'decod'",
		`return string.upcase("x")`:             "3:15 string has no 'upcase'",
		`gw.json:decode("1")`:                   "3:9 call gw.json.decode with a dot",
		`req.body()`:                            "3:5 call req:body with a colon",
		`local r = req; r.json_get("a")`:        "3:18 call req:json_get with a colon",
		`req.headers.all("X-A")`:                "3:13 call headers:all with a colon",
		`return req.headers:get("X-A")`:         `3:20 headers has no method 'get': it is read by headers["NAME"], set by headers["NAME"] = value and has :all(name)`,
		`return req.query:get("a")`:             `3:18 query has no method 'get': it is read by query["NAME"]`,
		`return req.json.user`:                  "3:12 req:json is a method: write req:json()",
		`gw.log("x")`:                           "3:4 gw.log is no function: it has debug, error, info, warn",
		`ngx.say("x")`:                          "3:1 global 'ngx' is not defined, it is always nil; what OpenResty has is told in docs/coming-from/nginx.md",
		`M.count = (M.count or 0) + 1`:          "3:0 function assigns to a field of the script's table: each VM has its own, the next request may see another",
		`return res.status`:                     "3:8 global 'res' is not defined, it is always nil; it is what on_response gets",
		`req:path()`:                            "3:5 req.path is a field, not a method",
		`req:bodys()`:                           "3:5 req has no 'bodys': it has ",
		`return req.pth`:                        "3:12 req has no 'pth': it has ",
		`req.client_ip = "1"`:                   "3:5 req.client_ip is read-only",
		`req.body = "1"`:                        "3:5 req:body is a method, nothing to assign to",
		`conf.key = 1`:                          "3:1 conf is read-only",
		`string.trim = 1`:                       "3:1 string is read-only",
		`gw.respond(403, "no")`:                 "3:4 gw.respond answers nobody by itself: write return gw.respond(...)",
		`local f = gw.redirect; f("/x")`:        "3:14 gw.redirect answers nobody by itself",
		`return conf.kye`:                       "3:13 conf has no 'kye': the script's config declares key, other",
		`local function on_reqest() end`:        "3:16 function 'on_reqest' is never called: the gateway calls M.on_request",
		`local function helper() end`:           "3:16 function 'helper' is never called",
		`local function a() a() end`:            "3:0 function 'a' is never called",
		`last = req.path`:                       "3:1 function assigns to the file-level local 'last': each VM has its own, the next request may see another",
		`local f = function() last = 1 end f()`: "3:22 function assigns to the file-level local 'last'",
		`respond_late()`:                        "7:13 gw.respond cannot be called in on_log: it may be called in on_request, on_request_chunk",
	} {
		source := `local M, last = { stage = "transform", config = { key = "string", other = "string" } }, nil
function M.on_request(req, ctx, conf)
` + body + `
end
M.init = function(conf) return conf.key .. conf.other end
function M.on_response(res) return last end
local late = gw.respond
function M.on_log(entry, ctx) end
return M`
		if body == `respond_late()` {
			source = `local M = { stage = "transform" }


local function late(ctx)
  local status = 200

  return gw.respond(status)
end
function M.on_log(entry, ctx) late(ctx) end
return M`
		} else {
			source = strings.Replace(source, "local late = gw.respond\n", "", 1)
		}
		got := findings(source)
		if len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s\ngot  %q\nwant %s", body, got, want)
		}
	}
}

func TestWhatTheGatewayDoesNotTakeIsFound(t *testing.T) {
	for statement, want := range map[string]string{
		`on_request = function() return gw.delay(5) end`:                                 "on_request returns what gw.delay gives: it returns nothing or gw.respond(...)",
		`on_request = function() local f = gw.mirror if f then return f("main") end end`: "on_request returns what gw.mirror gives",
		`on_request = function() return true end`:                                        "on_request returns true: it returns nothing or gw.respond(...)",
		`on_request = function(req) return "x" end`:                                      "on_request returns a text",
		`on_response = function(res) return {} end`:                                      "on_response returns a table: it returns nothing",
		`on_log = function() return gw.time.now() end`:                                   "on_log returns what gw.time.now gives: it returns nothing",
		`on_response_chunk = function(chunk) return #chunk > 0, 5 or 1 end`:              "",
		`on_response_chunk = function(chunk) return 5 end`:                               "on_response_chunk returns a number: it returns a text or nothing",
		`on_request_chunk = function(chunk) return "" end`:                               "",
		`on_request_chunk = function(chunk) return gw.respond(403) end`:                  "",
		`on_request_chunk = function(chunk) return gw.crypto.sha256(chunk) end`:          "",
		`on_request = function() return gw.respond(200) end`:                             "",
		`on_request = function() return gw.redirect("/x") end`:                           "",
		`on_request = function() return gw.shared.get("a", "b") end`:                     "on_request returns what gw.shared.get gives",
		`on_request = function() return gw.cache.get("a") end`:                           "",
		`on_request = function() return gw.log.info("x") end`:                            "",
		`on_request = function() return error("x") end`:                                  "",
		`on_request = function(req) local function f() return true end return f() end`:   "",
		`init = function() return { 1 } end`:                                             "",
	} {
		got := findings("return { stage = \"log\",\n" + statement + " }")
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], "2:") || !strings.Contains(got[0], want)) {
			t.Errorf("%s\ngot  %q\nwant %q", statement, got, want)
		}
	}
}

func TestWhatATimerCallsIsTimelyThereOrNot(t *testing.T) {
	const want = "2:11 gw.limit.take cannot be called in a timer: it may be called in on_request"
	for _, source := range []string{
		"gw.time.every(60, function()\n gw.limit.take(\"l\", \"k\")\nend)\nreturn { stage = \"log\" }",
		"local function run()\n gw.limit.take(\"l\", \"k\")\nend\nreturn { stage = \"log\", init = function() gw.time.every(60, run) end }",
	} {
		if got := findings(source); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s\ngot %q, want %s", source, got, want)
		}
	}
	if got := findings("return { stage = \"log\", init = function()\n gw.shared.set(\"s\", \"k\", 1)\nend }"); len(got) != 1 || !strings.Contains(got[0], "cannot be called in init") {
		t.Errorf("%q", got)
	}
}

func TestSettingsThatNothingReadsAreFound(t *testing.T) {
	const declared = `local M = { stage = "auth", config = {
  used = "string",
  unused = { "string", default = "x" },
  rate = "rate", key = "string",
} }
`
	for functions, want := range map[string]int{
		`function M.on_request(req, ctx, conf) return conf.used end`:                                       1,
		`function M.on_request(req, ctx, conf) local c = conf return c end`:                                0,
		`function M.on_request(req, ctx, conf) return conf[req.path] end`:                                  0,
		`local function f(c) return c.unused end function M.on_request(req, ctx, conf) return f(conf) end`: 0,
		`function M.init(c) return c.unused end function M.on_log(e, ctx, conf) return conf.used end`:      0,
		`function M.on_request() end`: 2,
	} {
		got := findings(declared + functions + "\nreturn M")
		if len(got) != want {
			t.Errorf("%s\ngot %q, want %d", functions, got, want)
		}
		for _, line := range got {
			if !strings.HasSuffix(line, "is never read") || want == 1 && line != "3:3 setting 'unused' is never read" {
				t.Errorf("%s\ngot %q", functions, line)
			}
		}
	}
}

func TestWhatMayBeMeantIsLeftAlone(t *testing.T) {
	for _, source := range []string{
		`local M = { stage = "log" }
		local cache
		local function build() cache = {} end
		build()
		function M.on_request(req) local x = cache return req.path .. tostring(x) end
		return M`,
		`local M = { stage = "log" }
		local handlers = { deny = function() return gw.respond(403) end, note = function(entry) entry:write() end }
		function M.on_request(req) return handlers.deny(req) end
		function M.on_log(entry) handlers.note(entry) end
		return M`,
		`local function handle(req) if req.path == "/x" then return gw.respond(404) end end
		return { stage = "log", on_request = handle }`,
		`local M = { stage = "log" }
		function M.on_request(req) local gw = { json = {} } gw.json.nothing() local reply = gw.respond() return reply end
		return M`,
		`local M = { stage = "log" }
		function M.on_request(req) req = { any = 1 } return req.any end
		return M`,
		`local M = { stage = "log" }
		function M.on_response(res) local path = res.req.path return res.headers["all"], res.headers.anything, path, res.req:body() end
		return M`,
		`helper = function() end
		return { stage = "log", on_request = function() helper() end }`,
		`local M = { stage = "log" }
		function M.on_request(req) local ok, reply = pcall(gw.respond, 403) return ok and reply end
		return M`,
		`gw.time.every(60, function() gw.shared.incr("s", "n") end)
		local function refresh() gw.http.get("http://x") gw.cache.set("k", 1, 1) end
		local function store(v) gw.shared.set("s", "k", v) end
		local M = { stage = "log" }
		function M.init(conf)
			gw.time.every(60, refresh)
			local every = gw.time.every
			every(60, function() store(1) end)
		end
		function M.on_request(req) refresh() end
		return M`,
		`local lib = {}
		function lib.twice(x) return x .. x end
		return lib`,
		`return`,
		`syntax error here`,
	} {
		if got := findings(source); len(got) > 0 {
			t.Errorf("%s\ngot %q", source, got)
		}
	}
}

// TestTheProjectsOwnScriptsAreClean holds every script that users copy from against the linter: it must cry no wolf.
func TestTheProjectsOwnScriptsAreClean(t *testing.T) {
	seen := 0
	for _, dir := range []string{"../scripts", "../docs/cookbook", "../conf/examples"} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".lua") || strings.HasSuffix(path, "_test.lua") || strings.HasSuffix(path, ".d.lua") {
				return err
			}
			source, err := os.ReadFile(path)
			seen++
			for _, line := range findings(string(source)) {
				t.Errorf("%s:%s", path, line)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 8 {
		t.Errorf("only %d scripts were looked at", seen)
	}
}

func TestFindingsStandOnce(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": `local last
return { stage = "transform", on_request = function(req)
  last = nowhere or nowhere; last = nowhere
end }`})
	got := strings.Split(b.Pipeline.Warnings.Error(), "\n")
	if len(got) != 2 {
		t.Errorf("got %q, want two lines", got)
	}
}

func FuzzLint(f *testing.F) {
	for _, s := range []string{"return 1", "local a, b = b, a", "function a.b:c(...) return self.x end", "local M = {} M.on_request = M return M", "return { on_log = on_log, config = { ... } }"} {
		f.Add(s)
	}
	w := luaapi.Sight()
	f.Fuzz(func(t *testing.T, source string) { lint.Check(source, w) })
}
