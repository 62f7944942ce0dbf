package luaapi_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
	"github.com/moongate/moongate/luaapi/store"
)

// arguments are values of every type, sane and not.
const arguments = `gw.shared.get("test", "done")
local values = {
	true, false, -1, 0, 1, 2.5, 1e308, 0/0, math.huge, -math.huge, 200, 404, "", "x", "sha256", "main", "/a/*", "\r\n", "\0", "é\255", ("y"):rep(70000),
	"{\"a\":[1,null]}", "Bearer x", "ip", "header:", {}, { 1, 2 }, { a = { b = 1 } }, { ["X-A"] = { "b" } }, { {} }, print, function() end, SELF, SELF.headers, ctx, conf,
	gw.json.null, gw.json.decode("123456789012345678901"), coroutine.create(function() end), gw.json.array {}, gw, { secret = ("k"):rep(32) }, { nil, 2 },
}
local n = 43
`

// done tells whether a script came to its end.
func done(b *luatest.Bench) (is bool) {
	b.Shared.Each(func(name string, st store.Stats) { is = is || name == "test" && st.Entries > 0 })
	return is
}

// TestNoAssignmentMakesGoPanic does the same with the fields of all handles.
func TestNoAssignmentMakesGoPanic(t *testing.T) {
	for i, handle := range []string{"req", "req.headers", "req.query", "req.cookies", "req.params", "ctx", "conf", "gw", "gw.json"} {
		body := strings.ReplaceAll(arguments, "SELF", "req") + `
			local keys = { "method", "path", "query", "raw_query", "host", "headers", "body", "user", "upstream", "hash", "endpoint", "X-A", "", "all", "add" }
			for i = 1, #keys do values[n + i] = keys[i] end
			local function key() return values[math.random(n + #keys)] end
			for i = 1, 300 do
				pcall(function() return ` + handle + `[key()] end)
				pcall(function() ` + handle + `[key()] = key() end)
				pcall(function() return #` + handle + ` end)
				pcall(function() return ` + handle + ` .. "x" end)
				pcall(function() return ` + handle + ` < key() end)
				pcall(function() return ` + handle + `(key()) end)
				pcall(function() for k, v in pairs(` + handle + `) do ` + handle + `[k] = key() end end)
				pcall(tostring, ` + handle + `)
			end
			gw.shared.set("test", "done", true)`
		b := bench(t, "[scripts]\nbudget = \"5s\"\n", onRequest(body))
		if a := b.Do(luatest.Request{Target: "/" + strconv.Itoa(i) + "?a=1&b=%zz", Headers: lines("Cookie", "a=1; b=2", "X-A", "1")}); !done(b) || a.Err != nil && strings.Contains(a.Err.Error(), "panic") {
			t.Errorf("%s: %v", handle, a.Err)
		}
	}
}
