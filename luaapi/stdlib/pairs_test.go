package stdlib_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// TestScriptsDoNotInfluenceOneAnother runs random pairs of scripts through one VM and the second one through a new VM too: what
// it sees must be equal.
func TestScriptsDoNotInfluenceOneAnother(t *testing.T) {
	lib := map[string]*vm.Script{"lib": mustCompile(t, "lib.lua", `local M = {list = {1, 2}, f = function(s) return s .. "!" end} M.__index = M return M`)}
	o := gateway()
	o.Lib = lib
	b := base(t, o)
	for i := range 400 {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		meddler, watcher := compile(t, meddle(r)), compile(t, watch)
		used, fresh := vm.New(b), vm.New(b)
		for range 1 + r.IntN(3) {
			run(used, meddler)
		}
		got, want := run(used, watcher), run(fresh, watcher)
		if got != want {
			t.Fatalf("after\n%s\nanother script sees\n%s\ninstead of\n%s", meddler.Source, got, want)
		}
	}
}

func run(v *vm.VM, s *vm.Script) string {
	f, err := v.Load(s)
	if err != nil {
		return "load: " + err.Error()
	}
	got, err := v.Call(f.(*lua.LFunction), lua.LString("in"))
	if err != nil {
		return "call: " + err.Error()
	}
	return got.String()
}

// meddle makes a script that tries to leave something behind, in a random order and nesting.
func meddle(r *rand.Rand) string {
	targets := []string{"_G", "string", "table", "math", "gw", "gw.conf", "gw.conf.skip", "require('lib')", "require('lib').list", "coroutine", "os", "getmetatable('') or {}"}
	keys := []string{"'x'", "'rep'", "'upper'", "'insert'", "1", "'__index'", "'f'", "'list'", "'print'", "'secret'", "#'abc'"}
	values := []string{"nil", "1", "{}", "function() return 'evil' end", "'evil'", "string.rep"}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	var action func(depth int) string
	action = func(depth int) string {
		switch r.IntN(14) {
		case 0:
			return fmt.Sprintf("%s = %s", []string{"x", "string", "leak", "print", "gw"}[r.IntN(5)], pick(values))
		case 1, 2, 3:
			return fmt.Sprintf("local t = %s t[%s] = %s", pick(targets), pick(keys), pick(values))
		case 4:
			return fmt.Sprintf("rawset(%s, %s, %s)", pick(targets), pick(keys), pick(values))
		case 5:
			return fmt.Sprintf("table.insert(%s, %s)", pick(targets), pick(values))
		case 6:
			return fmt.Sprintf("table.%s(%s)", []string{"remove", "sort"}[r.IntN(2)], pick(targets))
		case 7:
			return fmt.Sprintf("setmetatable(%s, {__index = function() return 'evil' end})", pick(targets))
		case 8:
			return fmt.Sprintf("local t = setmetatable({}, {__newindex = %s}) t[%s] = %s", pick(targets), pick(keys), pick(values))
		case 9:
			return fmt.Sprintf("for k, v in pairs(%s) do pcall(rawset, %s, k, nil) end", pick(targets), pick(targets))
		case 10:
			return "math.randomseed(7)"
		case 11:
			return "error('stop')"
		case 12:
			return "local s = string.rep('x', 100) local t = {s:byte(1, -1)} for i = 1, 50 do t[i] = coroutine.create(function() end) end"
		}
		if depth == 0 {
			return "return select('#', unpack({1, 2, 3}))"
		}
		inner := action(depth - 1)
		return fmt.Sprintf([]string{
			"pcall(function() %s end)", "coroutine.wrap(function() %s end)()", "xpcall(function() %s end, function(e) return e end)",
			"local co = coroutine.create(function() %s coroutine.yield(1) end) coroutine.resume(co)", "do %s end",
		}[r.IntN(5)], inner)
	}
	var b strings.Builder
	b.WriteString("return function(...)\n")
	for range 1 + r.IntN(6) {
		fmt.Fprintf(&b, "pcall(function(...) %s end, ...)\n", action(2))
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "do %s end\n", action(2))
	}
	b.WriteString("return 1, 2, 3\nend")
	return b.String()
}

// watch shows all that a script can see.
const watch = `return function(...)
	local out = {...}
	local function show(name, t, depth)
		local keys = {}
		for k, v in pairs(t) do keys[#keys + 1] = tostring(k) end
		table.sort(keys)
		out[#out + 1] = name .. ":" .. table.concat(keys, ",")
		for k, v in pairs(t) do
			if type(v) == "table" and depth > 0 and v ~= t then show(name .. "." .. tostring(k), v, depth - 1) end
		end
	end
	local function all(t, names) for _, n in ipairs(names) do show(n, t[n], 3) end end
	all(_G, {"string", "table", "math", "gw", "coroutine", "os"})
	show("lib", require("lib"), 2)
	out[#out + 1] = ("x"):rep(3) .. ("a"):upper() .. require("lib").f("s") .. #gw.conf.skip .. tostring(x) .. tostring(leak) .. type(print)
	out[#out + 1] = tostring(coroutine.running()) .. select("#", ...) .. tostring(getmetatable("")) .. tostring(getmetatable(gw))
	local ok, err = pcall(function() string.rep = 1 end)
	out[#out + 1] = tostring(err)
	table.sort(out)
	return table.concat(out, "\n")
end`
