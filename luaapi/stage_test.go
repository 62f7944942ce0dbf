package luaapi_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

// config is a gateway of one route.
const config = `
[[upstream]]
name = "main"
endpoints = ["http://127.0.0.1:9001", "http://127.0.0.1:9002"]
[[upstream]]
name = "canary"
endpoints = ["http://127.0.0.1:9003"]
[[route]]
name = "all"
path = "/**"
upstream = "main"
`

// stock are the settings of a test that asks for the limits that scripts have where nobody sets any.
const stock = "[scripts]\n"

// short lets a slow machine finish what takes no time, and endless loops end.
const short = "[scripts]\nbudget = \"1s\"\n"

// bench builds a pipeline of scripts; "filter" is scripts/filter.lua. Settings follow the configuration's text. Those that say nothing of
// [scripts] leave scripts the time that a slow machine takes.
func bench(t testing.TB, settings string, scripts map[string]string) *luatest.Bench {
	t.Helper()
	if !strings.Contains(settings, "[scripts]") {
		settings = patient + settings
	}
	files := map[string]string{"gateway.toml": config + settings}
	for name, source := range scripts {
		files["scripts/"+name+".lua"] = source
	}
	b, err := luatest.New(luatest.Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// filter is the source of a script with one function.
func filter(function, parameters, body string) string {
	return `local M = { stage = "transform" }
function M.` + function + `(` + parameters + `, ctx, conf)
` + body + `
end
return M
`
}

func onRequest(body string) map[string]string {
	return map[string]string{"filter": filter("on_request", "req", body)}
}

func TestAFilterReadsAndSetsHeaders(t *testing.T) {
	b := bench(t, "", onRequest(`req.headers["X-Out"] = req.headers["x-in"] .. "!"`))
	var got luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { got = f; return luatest.Answer{Status: 201, Body: "ok"} }
	a := b.Do(luatest.Request{Headers: [][2]string{{"X-In", "hello"}}})
	if a.Status != 201 || got.Header("X-Out") != "hello!" {
		t.Fatalf("answer %+v, upstream saw %+v, log %s", a, got, b.Log())
	}
}

func TestABrokenFilterIsNeverAnOpenDoor(t *testing.T) {
	for body, want := range map[string]string{
		`while true do end`:             `filter.lua:3: time budget`,
		`local x = nil; return x.y`:     `filter.lua:3: attempt to index`,
		`return 42`:                     `filter.lua:2: on_request returned 42`,
		`return {}`:                     `filter.lua:2: on_request returned a table`,
		`gw.respond(403)`:               `filter.lua:2: gw.respond was called and its result not returned`,
		`error({ code = 401 })`:         `{"code":401}`,
		`error(nil)`:                    `filter.lua:3: error object is nil`,
		`nonsense()`:                    `filter.lua:3: `,
		`req.headders.x = 1`:            `filter.lua:3: req has no "headders"`,
		`return req:body("x"):nope()`:   `filter.lua:3: `,
		`string.upper = 1`:              `filter.lua:3: `,
		`leak = req.path`:               `filter.lua:3: cannot set global 'leak'`,
		`ctx.upstream = "nowhere"`:      `there is no upstream "nowhere"`,
		`req.headers["X-A"] = "a\r\nb"`: `the value of header X-A has a line break`,
	} {
		b := bench(t, short, onRequest(body))
		asked := false
		b.Upstream = func(luatest.Forwarded) luatest.Answer { asked = true; return luatest.Answer{Status: 200} }
		a := b.Do(luatest.Request{})
		switch {
		case a.Status != 500 || asked:
			t.Errorf("%s: status %d, forwarded %t", body, a.Status, asked)
		case a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "stage transform"):
			t.Errorf("%s: error %v, want %s", body, a.Err, want)
		case strings.Contains(a.Body, "lua"):
			t.Errorf("%s: the client sees %s", body, a.Body)
		}
	}
}
