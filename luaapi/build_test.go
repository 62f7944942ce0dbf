package luaapi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/luatest"
)

// refusal builds a pipeline and gives the faults, one a line.
func refusal(t *testing.T, settings string, scripts map[string]string) []string {
	t.Helper()
	files := map[string]string{"gateway.toml": config + settings}
	for name, source := range scripts {
		files["scripts/"+name+".lua"] = source
	}
	_, err := luatest.New(luatest.Options{Files: files})
	var faults conf.Errors
	if err != nil && !errors.As(err, &faults) {
		t.Fatalf("%v is no conf.Errors", err)
	}
	var lines []string
	for _, fault := range faults {
		lines = append(lines, fault.Error())
	}
	return lines
}

const empty = `return { stage = "transform" }`

func TestWrongScriptsAreRefusedWithFileAndLine(t *testing.T) {
	for source, want := range map[string]string{
		"local x = = 1":                                    "scripts/filter.lua:1: ",
		"\n\nerror('no')":                                  "scripts/filter.lua:3: no",
		"\nlocal x = nil\nreturn x.y":                      "scripts/filter.lua:3: attempt to index",
		"while true do end":                                "scripts/filter.lua:1: time budget",
		"return 42":                                        "scripts/filter.lua:1: the script returned 42: it returns a table",
		"local M = {}\n":                                   "scripts/filter.lua:1: the script returned nil",
		"return {}":                                        `scripts/filter.lua:1: the table has no stage: write stage = "NAME"`,
		"return {\n  stage = 'nowhere' }":                  `scripts/filter.lua:2: "nowhere" is no stage: the stages are log, limit, auth, route, transform`,
		"return {\n stage = {} }":                          "scripts/filter.lua:2: stage is a table, not a stage's name",
		"return { stage = 'log',\n order='x'}":             `scripts/filter.lua:2: order is "x", not a number`,
		"return { stage = 'log',\n on_request = 1 }":       "scripts/filter.lua:2: on_request is 1, not a function",
		"return { stage = 'log',\n on_request = print }":   "scripts/filter.lua:2: on_request is a function of the gateway",
		"return { stage = 'log',\n leaves_bodies = true }": `scripts/filter.lua:2: leaves_bodies speaks of on_request_chunk and on_response_chunk, and the table has neither`,
		"return { stage = 'log', on_request_chunk = function() end,\n leaves_bodies = 1 }": `scripts/filter.lua:2: leaves_bodies is 1, not true or false`,
		"return { stage = 'log',\n onrequest = 1 }":                                        `scripts/filter.lua:2: the table has an unknown field "onrequest"`,
		"return { stage = 'log',\n on_error = 'pass' }":                                    `scripts/filter.lua:2: on_error is "pass"`,
		"return { stage = 'log',\n identity = 'X-A' }":                                     "scripts/filter.lua:2: identity lists headers",
		"return { stage = 'log',\n identity = { 'X A' } }":                                 "scripts/filter.lua:2: identity: no header can be named",
		"return { stage = 'log',\n config = 1 }":                                           "scripts/filter.lua:2: config is 1, not a table",
		"return { stage = 'log', config = {\n key = 'text' } }":                            `scripts/filter.lua:2: config.key: "text" is no type`,
		"return { stage = 'log', config = {\n enabled = 'string' } }":                      "scripts/filter.lua:2: config.enabled: this name is the gateway's",
		"return { stage = 'log', config = {\n k = { 'enum' } } }":                          "scripts/filter.lua:2: config.k: an enum lists its values",
		"return { stage = 'log', config = {\n k = { 'list', off = 1 } } }":                 `scripts/filter.lua:2: config.k has no option "off"`,
		"return { stage = 'log', config = {\n k = { 'integer', default = 1.5 } } }":        "scripts/filter.lua:2: config.k.default wants a whole number",
		"return { stage = 'log', config = {\n k = { 'integer', max = 1, default = 5 } } }": "scripts/filter.lua:2: config.k.default wants at most 1",
		"return { stage = 'log', config = {\n k = { 'string', pattern = '(' } } }":         "scripts/filter.lua:2: config.k.pattern is a regular expression",
		"return { stage = 'log', config = {\n k = { 'duration', default = '5' } } }":       `scripts/filter.lua:2: config.k.default "5"`,
		"return { stage = 'log', config = {\n k = { 'boolean', min = 1 } } }":              "scripts/filter.lua:2: config.k.min is a value",
		"return { stage = 'log', init = function()\n error('bad') end }":                   "scripts/filter.lua:2: filter.filter: bad",
		"require('nothing')\n" + empty:                                                     "scripts/filter.lua:1: module 'nothing' not found",
		"gw.respond(200)\n" + empty:                                                        "scripts/filter.lua:1: gw.respond cannot be called in the file itself",
	} {
		got := refusal(t, "", map[string]string{"filter": source})
		if !slices.ContainsFunc(got, func(line string) bool {
			return strings.HasPrefix(line, want) || strings.Contains(line, want) && strings.HasPrefix(want, "filter")
		}) {
			t.Errorf("%s\ngot  %q\nwant %s", source, got, want)
		}
	}
}

const typed = `return { stage = "transform", config = {
  s = { "string", min = 2, max = 4, pattern = "^[a-z]+$" }, n = { "number", min = 0, max = 1 }, i = "integer", b = "boolean",
  d = { "duration", min = "1s", max = "1m" }, z = { "size", max = "1MiB" }, r = "rate", l = { "list", of = "integer", max = 2 },
  m = { "map", of = "string" }, e = { "enum", values = { "a", "b" } }, x = { "secret", min = 8 }, must = { "string", required = true },
  free = "list",
} }`

func TestWrongSettingsAreRefusedAtTheirKey(t *testing.T) {
	for setting, want := range map[string]string{
		`s = 1`:         "wants a string, not 1",
		`s = "a"`:       "wants at least 2 bytes",
		`s = "abcde"`:   "wants at most 4 bytes",
		`s = "AB"`:      "does not match ^[a-z]+$",
		`n = 1.5`:       "wants at most 1",
		`n = "1"`:       "wants a number",
		`i = 1.5`:       "wants a whole number",
		`b = "yes"`:     "wants true or false",
		`d = 5`:         "wants a duration",
		`d = "500ms"`:   "wants at least 1s",
		`d = "5"`:       `"5"`,
		`z = "2MiB"`:    "wants at most 1048576 bytes",
		`z = "big"`:     "is no size",
		`r = "x"`:       "is no rate",
		`r = 0`:         "a rate of 0",
		`l = [1, "x"]`:  "[1] wants a number",
		`l = [1, 2, 3]`: "wants at most 2 items",
		`l = 1`:         "wants a list",
		`m = { a = 1 }`: "a wants a string",
		`m = "x"`:       "wants a table",
		`e = "c"`:       "wants one of a, b",
		`x = "short"`:   "wants at least 8 bytes",
		`x = 12345678`:  "wants a string",
		`S = "ab"`:      "the script has no such setting: it has b, d, e, ",
	} {
		key, _, _ := strings.Cut(setting, " ")
		got := refusal(t, "[filter.filter]\nmust = \"here\"\n"+setting+"\n", map[string]string{"filter": typed})
		if len(got) != 1 || !strings.HasPrefix(got[0], "gateway.toml:14: filter.filter."+key+": ") || !strings.Contains(got[0], want) {
			t.Errorf("%s\ngot  %q\nwant %s", setting, got, want)
		}
	}
	want := "scripts/filter.lua:1: filter.filter.must: is required: a string"
	if got := refusal(t, "", map[string]string{"filter": typed}); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestALimiterMayBeNamedByDefault(t *testing.T) {
	script := map[string]string{"filter": `return {
  stage = "limit", config = { limiter = { "string", default = "tenants" }, rate = "rate" },
  on_request = function(req, ctx, conf) gw.limit.take(conf) end,
}`}
	for settings, want := range map[string]string{
		"[limiter.tenants]\nrate = 5\n": "",
		"[filter.filter]\nrate = 5\n":   "",
		"":                              `scripts/filter.lua:1: filter.filter.limiter: there is no limiter "tenants": add a [limiter.tenants] with its rate`,
	} {
		if got := strings.Join(refusal(t, settings, script), "\n"); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", settings, got, want)
		}
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	got := refusal(t, `
[filter.typed]
i = "x"
b = 1
unknown = 1
[filter.one]
stage = "transform"
`, map[string]string{"typed": strings.Replace(typed, "config", "on_request = function() end, config", 1), "one": "return 1", "two": "syntax error here"})
	text := strings.Join(got, "\n")
	for _, want := range []string{"filter.typed.i", "filter.typed.b", "filter.typed.unknown", "filter.typed.must", "scripts/one.lua:1", "scripts/two.lua:1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	for _, setting := range []string{`x = 12345678`, `x = ["hunter2"]`, `x = "hunter2"`} {
		for _, line := range refusal(t, "[filter.filter]\nmust = \"x\"\n"+setting+"\n", map[string]string{"filter": typed}) {
			if strings.Contains(line, "hunter2") || strings.Contains(line, "12345678") {
				t.Errorf("%s: %s", setting, line)
			}
		}
	}
}

func TestSettingsAreSeenInTheirUnits(t *testing.T) {
	b := bench(t, `
[filter.filter]
must = "m"
s = "abc"
n = 1
i = 7
b = true
d = "1m"
z = "64KiB"
r = "30/m"
l = [1, 2]
m = { k = "v" }
e = "b"
x = "12345678"
free = ["a", 1, { deep = true }]
`, map[string]string{"filter": strings.Replace(typed, "config", `on_request = function(req, ctx, conf)
		assert(conf.must == "m" and conf.s == "abc" and conf.n == 1 and conf.i == 7 and conf.b == true)
		assert(conf.d == 60 and conf.z == 65536 and conf.r == 0.5 and conf.l[2] == 2 and #conf.l == 2)
		assert(conf.m.k == "v" and conf.e == "b" and conf.x == "12345678" and conf.free[3].deep == true and conf.state == nil)
		local sum = 0
		for _, n in ipairs(conf.l) do sum = sum + n end
		assert(sum == 3 and gw.json.encode(conf.l) == "[1,2]")
	end, config`, 1)})
	if a := b.Do(luatest.Request{}); a.Err != nil {
		t.Error(a.Err)
	}
}

func TestInitMakesStateForEachDistinctSettings(t *testing.T) {
	b := bench(t, `
[filter.filter]
name = "base"
[[route]]
name = "other"
path = "/other"
upstream = "main"
[route.filter.filter]
name = "over"
`, map[string]string{"filter": `return { stage = "transform", config = { name = { "string", required = true } },
		init = function(conf) return { upper = conf.name:upper(), list = { 1 } } end,
		on_request = function(req, ctx, conf)
			req.headers["X-State"] = conf.state.upper .. conf.name
			assert(not pcall(function() conf.state.list[2] = 2 end))
		end }`})
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
	for route, want := range map[string]string{"all": "BASEbase", "other": "OVERover"} {
		if a := b.Do(luatest.Request{Route: route}); a.Err != nil || seen.Header("X-State") != want {
			t.Errorf("%s: %v, saw %q, want %s", route, a.Err, seen.Header("X-State"), want)
		}
	}
}

func TestWarningsAreKept(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": `local last
return { stage = "transform", on_request = function(req)
  last = req.path
  nowhere()
end }`})
	text := b.Pipeline.Warnings.Error()
	for _, want := range []string{"scripts/filter.lua:3", "file-level local 'last'", "scripts/filter.lua:4", "'nowhere' is not defined"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}
