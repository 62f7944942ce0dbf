package stdlib_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// gateway is a small table tree as a binding would register it.
func gateway() vm.Options {
	conf := &lua.LTable{Metatable: lua.LNil}
	skip := &lua.LTable{Metatable: lua.LNil}
	skip.RawSetInt(1, lua.LString("/login"))
	skip.RawSetInt(2, lua.LString("/public"))
	conf.RawSetString("skip", skip)
	conf.RawSetString("secret", lua.LString("s3cret"))
	return vm.Options{
		Funcs: []vm.Func{{Name: "gw.jwt.verify", Do: func(a vm.Args) int { return a.Return(lua.LTrue) }}},
		Values: map[string]lua.LValue{
			"gw.conf": conf,
		},
	}
}

func TestAScriptCannotChangeWhatOthersSee(t *testing.T) {
	b := base(t, gateway())
	for _, test := range []struct{ attempt, want string }{
		{`x = 1`, "cannot set global 'x' after the script is loaded"},
		{`_G.x = 1`, "cannot set global 'x' after the script is loaded"},
		{`_G["x"] = 1`, "cannot set global 'x'"},
		{`_G[1] = 1`, "cannot set global '1'"},
		{`rawset(_G, "x", 1)`, "table of globals cannot be changed"},
		{`atload = 2`, "cannot set global 'atload'"},
		{`atload = nil`, "cannot set global 'atload'"},
		{`string = nil`, "cannot set global 'string'"},
		{`print = nil`, "cannot set global 'print'"},
		{`string.rep = nil`, "string is read-only: cannot set 'rep'"},
		{`string.new = 1`, "string is read-only: cannot set 'new'"},
		{`gw.jwt.verify = nil`, "gw.jwt is read-only: cannot set 'verify'"},
		{`gw.mine = {}`, "gw is read-only: cannot set 'mine'"},
		{`gw.conf.secret = "x"`, "gw.conf is read-only"},
		{`gw.conf.skip[1] = "x"`, "gw.conf.skip is read-only"},
		{`gw.conf.skip[#gw.conf.skip + 1] = "x"`, "gw.conf.skip is read-only"},
		{`rawset(string, "rep", 1)`, "string is read-only"},
		{`rawset(gw.conf.skip, 1, 1)`, "gw.conf.skip is read-only"},
		{`table.insert(string, 1)`, "string is read-only"},
		{`table.insert(gw.conf.skip, "x")`, "gw.conf.skip is read-only"},
		{`table.remove(gw.conf.skip)`, "gw.conf.skip is read-only"},
		{`table.sort(gw.conf.skip)`, "gw.conf.skip is read-only"},
		{`table.insert(_G, 1)`, "table of globals cannot be changed"},
		{`getmetatable("").__index = nil`, "attempt to index a non-table object(string)"},
		{`getmetatable("").__index.rep = nil`, "attempt to index"},
		{`getmetatable(string).__index = nil`, "attempt to index a non-table object(boolean)"},
		{`setmetatable("", {})`, "table expected, got string"},
		{`setmetatable(1, {__index = string})`, "table expected, got number"},
		{`setmetatable(print, {})`, "table expected, got function"},
		{`setmetatable(nil, {})`, "table expected, got nil"},
		{`setmetatable(string, {})`, "cannot change a protected metatable"},
		{`setmetatable(gw, nil)`, "cannot change a protected metatable"},
		{`setmetatable(_G, {})`, "cannot change a protected metatable"},
		{`local t = setmetatable({}, {__newindex = string}) t.rep = 1`, "string is read-only"},
		{`local t = setmetatable({}, {__newindex = _G}) t.x = 1`, "cannot set global 'x'"},
		{`setmetatable({}, string)`, "string is read-only and cannot serve as a metatable"},
		{`coroutine.wrap(function() x = 1 end)()`, "cannot set global 'x'"},
		{`coroutine.wrap(function() string.rep = nil end)()`, "string is read-only"},
		{`local ok, e = pcall(function() x = 1 end) error(e, 0)`, "cannot set global 'x'"},
		{`local ok, e = pcall(rawset, string, "rep", 1) error(e, 0)`, "string is read-only"},
		{`for k in pairs(string) do string[k] = nil end`, "string is read-only"},
		{`local f, real = pairs(string) real.rep = nil`, "string is read-only"},
		{`local f, real = ipairs(gw.conf.skip) real[1] = nil`, "gw.conf.skip is read-only"},
		{`gw = nil`, "cannot set global 'gw'"},
		{`local mt = {} mt.__index = mt string.format.x = 1`, "attempt to index a non-table object(function)"},
	} {
		v := vm.New(b)
		f := load(t, v, "atload = 1\nlocal M = {}\nfunction M.f()\n"+test.attempt+"\nend\nreturn M.f")
		_, err := v.Call(f)
		if err == nil {
			t.Errorf("%s: passed", test.attempt)
			continue
		}
		if e := failure(t, err); !strings.Contains(e.Message, test.want) || e.Script != "s.lua" || e.Line != 4 {
			t.Errorf("%s: %v", test.attempt, err)
		}
		probe := load(t, v, `return function()
			return tostring(x) .. tostring(atload) .. type(string.rep) .. type(gw.jwt.verify) .. #gw.conf.skip .. gw.conf.skip[1] .. ("a"):rep(2)
		end`)
		if got, err := v.Call(probe); err != nil || got != lua.LString("nilnilfunctionfunction2/loginaa") {
			t.Errorf("%s: afterwards another script sees %v, %v", test.attempt, got, err)
		}
	}
}

// load loads a script that returns a function.
func load(t testing.TB, v *vm.VM, source string) *lua.LFunction {
	t.Helper()
	r, err := v.Load(compile(t, source))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*lua.LFunction)
}

func TestWhatReachesOutsideIsNotThere(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, name := range []string{"io", "debug", "package", "channel", "load", "loadstring", "dofile", "loadfile", "getfenv", "setfenv", "module",
		"newproxy", "collectgarbage", "_printregs", "os.execute", "os.exit", "os.getenv", "os.remove", "os.rename", "os.tmpname", "os.setlocale",
		"string.dump", "arg"} {
		got, err := v.Call(function(t, v, "return type("+name+")"))
		if err != nil || got != lua.LString("nil") {
			t.Errorf("%s is a %v, %v", name, got, err)
		}
	}
}

func TestFrozenTablesReadLikeTables(t *testing.T) {
	v := vm.New(base(t, gateway()))
	for _, test := range []struct{ body, want string }{
		{`return #gw.conf.skip`, "2"},
		{`local n = 0 for i, s in ipairs(gw.conf.skip) do n = n + i * #s end return n`, "20"},
		{`local n = 0 for k, v in pairs(gw.conf) do n = n + 1 end return n`, "2"},
		{`return table.concat(gw.conf.skip, ",")`, "/login,/public"},
		{`return (unpack(gw.conf.skip))`, "/login"},
		{`return select(2, next(gw.conf.skip))`, "/login"},
		{`return rawget(gw.conf, "secret")`, "s3cret"},
		{`return rawlen(gw.conf.skip)`, "2"},
		{`return tostring(getmetatable(gw.conf))`, "false"},
		{`return table.maxn(gw.conf.skip)`, "2"},
		{`return tostring(gw.conf.missing)`, "nil"},
		{`local t = setmetatable({}, {__index = gw.conf}) return t.secret`, "s3cret"},
		{`return ("/login"):gsub("/login", gw.conf)`, "/login"},
		{`return type(_G.string.rep) .. type(_G._G) .. tostring(_G == _G._G)`, "functiontabletrue"},
		{`local n = 0 for k in pairs(_G) do if k == "string" or k == "gw" then n = n + 1 end end return n`, "2"},
		{`return tostring(rawget(_G, "string") == string)`, "true"},
	} {
		if got, err := v.Call(function(t, v, test.body)); err != nil || got.String() != test.want {
			t.Errorf("%s: %v, %v; want %s", test.body, got, err, test.want)
		}
	}
}

func TestGlobalsMadeAtLoadBelongToTheScript(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	f := load(t, v, `count = 1 function helper() return count + 1 end print = "mine" return function() return helper() .. print end`)
	if got, err := v.Call(f); err != nil || got != lua.LString("2mine") {
		t.Fatalf("got %v, %v", got, err)
	}
	other := load(t, v, `return function() return type(count) .. type(helper) .. type(print) end`)
	if got, _ := v.Call(other); got != lua.LString("nilnilfunction") {
		t.Fatalf("another script sees %v", got)
	}
	_, err := v.Load(compile(t, "\nstring = nil"))
	if e := failure(t, err); !strings.Contains(e.Error(), "s.lua:2: cannot remove global 'string'") {
		t.Fatal(err)
	}
}

// TestASecondRequestSeesNothingOfTheFirst is what users of pooled gopher-lua states reported (yuin/gopher-lua#98).
func TestASecondRequestSeesNothingOfTheFirst(t *testing.T) {
	lib := map[string]*vm.Script{"util": mustCompile(t, "lib/util.lua", `local M = {nested = {1}} function M.name() return "util" end return M`)}
	b := base(t, vm.Options{Lib: lib})
	pool := vm.NewPool(b, vm.PoolOptions{Max: 1})
	first := compile(t, `return function(header)
		pcall(function() leaked = header end)
		pcall(function() string.upper = function() return header end end)
		pcall(function() require("util").field = header end)
		pcall(function() require("util").nested[2] = header end)
		pcall(rawset, require("util"), "field", header)
		pcall(table.insert, require("util").nested, header)
		math.randomseed(1)
		return header, header, header
	end`)
	look := compile(t, `return function(...)
		local util = require("util")
		return table.concat({tostring(leaked), ("a"):upper(), tostring(util.field), #util.nested, select("#", ...), util.name()}, " ")
	end`)
	call := func(s *vm.Script, args ...lua.LValue) lua.LValue {
		v, err := pool.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Give(v)
		f, err := v.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Call(f.(*lua.LFunction), args...)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	call(first, lua.LString("secret"))
	if got := call(look); got != lua.LString("nil A nil 1 0 util") {
		t.Errorf("the second request sees %v", got)
	}
	if size := pool.Stats().Size; size != 1 {
		t.Errorf("the pool has %d VMs", size)
	}
}

func mustCompile(t testing.TB, name, source string) *vm.Script {
	t.Helper()
	s, err := vm.Compile(name, source)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
