package luaapi_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

func TestRegularExpressionsFindSplitAndReplace(t *testing.T) {
	holds(t, `
		local groups = gw.re.match("id=42", "(?P<name>[a-z]+)=(?P<value>[0-9]+)(;)?")
		assert(groups[0] == "id=42" and groups[1] == "id" and groups.name == "id" and groups.value == "42" and groups[3] == false)
		assert(gw.re.match("x", "[0-9]") == nil and gw.re.test("ä", "^.$") and gw.re.test("\255\0", "^\\x{fffd}\\x00$"))

		local first, last = gw.re.find("aXbX", "X")
		assert(first == 2 and last == 2 and gw.re.find("a", "X") == nil)
		first, last = gw.re.find("abc", "")
		assert(first == 1 and last == 0)

		local seen = {}
		for g in gw.re.gmatch("a1 b22", "(?P<letter>[a-z])([0-9]+)") do seen[#seen + 1] = g.letter .. "=" .. g[2] end
		assert(table.concat(seen, " ") == "a=1 b=22")
		for _ in gw.re.gmatch("abc", "x") do error("nothing fits") end

		local pieces = gw.re.split("a, b ,c", "\\s*,\\s*")
		assert(#pieces == 3 and pieces[2] == "b" and #gw.re.split("", ",") == 1 and #gw.re.split("abc", "") == 3)
		pieces = gw.re.split("a,b,c", ",", 2)
		assert(#pieces == 2 and pieces[2] == "b,c")

		local out, n = gw.re.replace("a1b2", "[0-9]", "<$0>")
		assert(out == "a<1>b<2>" and n == 2)
		assert(gw.re.replace("John Smith", "(?P<a>\\w+) (?P<b>\\w+)", "$b, ${a}$$") == "Smith, John$")
		out, n = gw.re.replace("aaa", "a", "b", 2)
		assert(out == "bba" and n == 2 and gw.re.replace("aaa", "a", "b", 0) == "aaa")
		out, n = gw.re.replace("a1b2c3", "[0-9]", function(g) if g[0] ~= "2" then return g[0] * 2 end end)
		assert(out == "a2b2c6" and n == 3)
		out = gw.re.replace("abc", "", "-")
		assert(out == "-a-b-c-", out)
	`, luatest.Request{})
}

func TestRegularExpressionsAreBounded(t *testing.T) {
	for call, want := range map[string]string{
		`gw.re.test("a", "(")`:                                                    "missing closing )",
		`gw.re.test("a", ("x"):rep(5000))`:                                        "longer than 4096",
		`gw.re.test("a", ("a{1000}"):rep(100))`:                                   "fewer repetitions",
		`gw.re.test(("a"):rep(1e6), "(a*)*(b*)*(c*)*(d*)*(e*)*(f*)*(g*)*(h*)*$")`: "too long for this expression",
		`gw.re.replace(("a"):rep(1e4), "a", ("b"):rep(1e3))`:                      "longer than the limit",
		`gw.re.replace(("a"):rep(1e6), ".+", "$0$0")`:                             "longer than the limit",
		`gw.re.replace("a", "a", function() return {} end)`:                       "gave a table",
		`gw.re.replace("a", "a", function() error("mine") end)`:                   "mine",
		`gw.re.replace("a", "a", {})`:                                             "string expected, got table",
		`gw.re.split("a,b", ",", 0)`:                                              "at least one piece",
		`gw.re.split((","):rep(70000), ",")`:                                      "more than 65535 items",
		`gw.re.replace(("a"):rep(70000), "a", "b")`:                               "more than 65535 parts",
		`gw.re.gmatch(("a"):rep(70000), "a")`:                                     "more than 65535 parts",
		`gw.re:test("a", "a")`:                                                    "call it with a dot: gw.re.test(...)",
		`gw.re.tset("a", "a")`:                                                    "gw.re has no 'tset': it has find, gmatch, match, replace, split, test",
	} {
		if a, _ := run(t, call, luatest.Request{}); a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3: ") {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
}

func TestManyExpressionsAreForgottenAgain(t *testing.T) {
	holds(t, `for i = 1, 600 do assert(gw.re.test("x" .. i, "^x" .. i .. "$")) end`, luatest.Request{})
}
