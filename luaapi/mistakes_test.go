package luaapi_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

// Misuse is an error at the script's line that says what would be right.
func TestMisuseSaysWhatWouldBeRight(t *testing.T) {
	for call, want := range map[string]string{
		`gw.jsn.decode("{}")`:               "gw has no 'jsn': it has ",
		`gw.json.decod("{}")`:               "gw.json has no 'decod': it has array, decode, encode, get, null",
		`gw.json:decode("{}")`:              "call it with a dot: gw.json.decode(...)",
		`gw.crypto:sha256("x")`:             "call it with a dot: gw.crypto.sha256(...)",
		`gw.json:encode({})`:                "call it with a dot: gw.json.encode(...)",
		`req.body()`:                        "call it with a colon: req:body(...)",
		`req.headers.all("X")`:              "call it with a colon, on req.headers or res.headers",
		`local x = req.hedaers`:             `req has no "hedaers": it has bearer, `,
		`req.pth = "/x"`:                    `req has no "pth"`,
		`req.raw_path = "/x"`:               "req.raw_path is read-only: assign to req.path",
		`local x = conf.secrt`:              `conf has no "secrt": declare it in config; it has secret`,
		`conf.secret = "x"`:                 "conf is read-only",
		`gw.json = {}`:                      "gw is read-only",
		`gw.json.decode({})`:                "bad argument #1 to 'gw.json.decode' (string expected, got table)",
		`gw.json.decode()`:                  "bad argument #1 to 'gw.json.decode' (string expected, got nil)",
		`gw.respond("200")`:                 "",
		`gw.respond(99)`:                    "a status is a whole number from 200 to 599, not 99",
		`gw.metric.counter("x")`:            "gw.metric.counter cannot be called in on_request; it may be called in the file itself, init",
		`gw.file.read("x")`:                 "gw.file.read cannot be called in on_request; it may be called in the file itself, init",
		`seen:incr("x")`:                    `a metric has no "incr": it has :inc(), :add(), :set(), :observe()`,
		`seen.inc("x")`:                     "call it with a colon: metric:inc(...)",
		`seen.value = 1`:                    "a metric has no fields to set",
		`ctx.upstream = "nowhere"`:          `there is no upstream "nowhere": there are canary, main`,
		`local x = ctx[1]`:                  "ctx has names only, not a number",
		`gw.env("HOME")`:                    `"HOME" may not be read: add it to env of [scripts]`,
		`req.headers["X-A"] = {}`:           "header X-A is set to a string or a number, not to a table",
		`req.headers["Content-Length"] = 1`: "header Content-Length is written by the gateway",
		`gw.limit.take("nobody", "x")`:      `there is no limiter "nobody"`,
	} {
		if want == "" {
			continue
		}
		b := bench(t, "[filter.filter]\nsecret = \"0123456789\"\n", map[string]string{"filter": `local seen = gw.metric.counter("seen", { "a" })
return { stage = "transform", config = { secret = "secret" }, on_request = function(req, ctx, conf)
` + call + `
end }`})
		if a := b.Do(luatest.Request{}); a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3: ") {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
}

func TestMistakesOfALoadNameTheTrueLine(t *testing.T) {
	for source, want := range map[string]string{
		"local M = { stage = \"transform\" }\n\nfunction M.on_requst(req) end\nreturn M":                           `scripts/filter.lua:3: the table has an unknown field "on_requst" (did you mean on_request?)`,
		"local M = { stage = \"transform\" }\nM.on_respons =\n  function(req) end\nreturn M":                       `scripts/filter.lua:3: the table has an unknown field "on_respons" (did you mean on_response?)`,
		"local M = { stage = \"transform\" }\nfunction M.init(conf)\n  local x = nil\n  return x.y\nend\nreturn M": "scripts/filter.lua:4: filter.filter: attempt to index",
		"local M = { stage = \"transform\" }\nfunction M.init(conf)\n\n  assert(false, \"mine\")\nend\nreturn M":   "scripts/filter.lua:4: filter.filter: mine",
		"local M = { stage = \"transform\" }\nfunction M.init(conf)\n  gw.respond(200)\nend\nreturn M":             "scripts/filter.lua:3: filter.filter: gw.respond cannot be called in init; it may be called in on_request",
		"local M = { stage = \"transform\" }\nfunction M.init(conf)\n  return conf.nothing\nend\nreturn M":         `scripts/filter.lua:3: filter.filter: conf has no "nothing": declare it in config; it takes none`,
		"\n\nlocal x = gw.jwt.verfy\nreturn {}":                                                                    "scripts/filter.lua:3: gw.jwt has no 'verfy'",
	} {
		_, err := luatest.New(luatest.Options{Files: map[string]string{"gateway.toml": config, "scripts/filter.lua": source}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s\n%s", err, want, source)
		}
	}
}
