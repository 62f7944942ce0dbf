package luaapi_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moongate/moongate/luaapi/luatest"
)

// TestNoNativeOutlivesItsBudget calls natives with values that are small to write down and huge to work on.
func TestNoNativeOutlivesItsBudget(t *testing.T) {
	const long = `local s = ("y"):rep(2 ^ 20) `
	const twins = `local t = { 1 } for i = 1, 90 do t = { t, t } end `
	const many = long + `local list = {} for i = 1, 60000 do list[i] = s end `
	for body, want := range map[string]string{
		many + `gw.json.encode(list)`:                           "longer than the limit",
		twins + `gw.json.encode(t)`:                             "longer than the limit",
		twins + `return gw.respond(200, t)`:                     "longer than the limit",
		twins + `ctx.t = t`:                                     "time budget",
		`ctx.t = conf.state.twins`:                              "time budget",
		many + `return gw.respond(200, "", { ["X-A"] = list })`: "more than 256 lines",
		many + `local h = {} for i = 1, 1000 do h["X-" .. i] = { "a", "b" } end return gw.respond(200, "", h)`: "more than 256 lines",
		many + `gw.jwt.verify("a.b.c", { secret = ("k"):rep(32), issuer = list })`:                             "issuer: is longer than 4194304 bytes",
		many + `gw.url.query({ a = list })`:                                                                    "longer than the limit",
		many + `gw.path.match(list, "/")`:                                                                      "a path pattern begins with a slash",
		many + `gw.log.info("m", { list = list })`:                                                             "",
		twins + `error(t)`: "{[1]=table",
		long + `gw.re.replace(s:sub(1, 60000), "", s)`:                                         "longer than the limit",
		long + `gw.re.replace(s:sub(1, 60000), "(y)", "$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1")`: "longer than the limit",
		long + `gw.re.test(s, "(a?){500}b")`:                                                   "too long for this expression",
		long + `gw.re.test("x", s)`:                                                            "longer than 4096",
		`gw.re.test("x", "((a{1,1000}){1,1000}){1,1000}")`:                                     "invalid repeat count",
		`for i = 1, 1000 do ctx["k" .. i] = i end`:                                             "ctx holds 256 values already",
		long + `for i = 1, 10000 do req.raw_query = s local v = req.query.x end`:               "time budget",
		long + `for i = 1, 10000 do gw.crypto.sha512(s) end`:                                   "time budget",
		long + `for i = 1, 10000 do gw.crypto.hex_decode(s .. s) end`:                          "longer than the limit",
		long + `gw.crypto.base64_encode(s)`:                                                    "longer than the limit",
		long + `for i = 1, 1000 do gw.json.decode('"' .. s:sub(3) .. '"') end`:                 "", // by time or by bytes, whichever comes first
		`local d = ("a."):rep(99) .. "a" local s = ('{"a":'):rep(99) .. "[" .. ("1,"):rep(2 ^ 18) .. "1]" .. ("}"):rep(99)
			for i = 1, 1000 do gw.json.get(s, d) end`: "time budget",
	} {
		b := bench(t, stock, map[string]string{"filter": `local M = { stage = "transform" }
function M.init() ` + twins + `return { twins = t } end
function M.on_request(req, ctx, conf)
` + body + `
end
return M`})
		start := cpu(t)
		a := b.Do(luatest.Request{})
		took := cpu(t) - start
		told := a.Err != nil && (strings.Contains(a.Err.Error(), want) || strings.Contains(a.Err.Error(), "time budget")) // on a slow machine
		if !told && (a.Err != nil || want != "") {
			t.Errorf("%s: %.300v, want %s", body, a.Err, want)
		}
		if took > 3*time.Second {
			t.Errorf("%s: took %s", body, took)
		}
	}
}

// cpu is the time that the process has had a processor: how long it waited for one among others tells nothing.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestAScriptsOwnTableCannotHoldTheLoadUp(t *testing.T) {
	const twins = `local t = { 1 } for i = 1, 90 do t = { t, t } end `
	start := cpu(t)
	got := strings.Join(refusal(t, "", map[string]string{
		"default":  twins + `return { stage = "transform", config = { x = { "list", default = t } } }`,
		"of":       `local o = { "list" } o.of = o return { stage = "transform", config = { x = o } }`,
		"identity": twins + `return { stage = "transform", identity = t }`,
	}), "\n")
	for _, want := range []string{"default.lua:1: config.x.default has more than", "of.lua:1: config.x.of", "identity.lua:1: identity lists headers"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%.2000s", want, got)
		}
	}
	if took := cpu(t) - start; took > 3*time.Second {
		t.Errorf("took %s", took)
	}
}
