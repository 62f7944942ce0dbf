package vm_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func TestASyntaxErrorSaysWhere(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{"local x = 1\n\nreturn y z", "s.lua:3: syntax error near 'z'"},
		{"x = = 1", "s.lua:1: syntax error near '='"},
		{"if x then\n\n", "s.lua:3: syntax error at the end of the file"},
		{"\ngoto nowhere", "no visible label 'nowhere' for <goto> at line 2"},
		{"\nbreak", "s.lua:2: no loop to break"},
		{"return 'a", "s.lua:1: unterminated string"},
		{"return " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), ""},
		{"return " + strings.Repeat("-", 5000) + "1", ""},
		{"return " + strings.Repeat("{", 5000) + strings.Repeat("}", 5000), "too many nested levels"},
		{strings.Repeat(" ", 1<<20) + "x", "longer than"},
	} {
		_, err := vm.Compile("s.lua", test.source)
		if err == nil {
			if test.want != "" {
				t.Errorf("%.40q compiled", test.source)
			}
			continue
		}
		if e := raised(t, err); !strings.Contains(e.Error(), test.want) || e.Script != "s.lua" {
			t.Errorf("%.40q: %v; want %s", test.source, err, test.want)
		}
	}
}

func TestFilesStartAsTheyAreWritten(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, source := range []string{"\uFEFFreturn 1", "#!/usr/bin/lua\nreturn 1", "return 1\r\n", "-- nothing\nreturn 1"} {
		if got, err := v.Load(compile(t, "s.lua", source)); err != nil || got != lua.LNumber(1) {
			t.Errorf("%q: %v, %v", source, got, err)
		}
	}
}

// TestCompilerFaultsOfGopherLua are programs that stock gopher-lua 1.1.2 gets wrong.
func TestCompilerFaultsOfGopherLua(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, test := range []struct {
		body string
		want lua.LValue
	}{
		{`local a, b = 1, 2 a, b = b, a return a * 10 + b`, lua.LNumber(21)},
		{`local a, b = 1, 2 a, b = b + 1, a + 1 return a * 10 + b`, lua.LNumber(32)},
		{`local t, a = {}, 1 a, t[a] = 7, a return a * 10 + t[1]`, lua.LNumber(71)},
		{`local a = {} local o = a a, a.x = 1, 2 return o.x`, lua.LNumber(2)},
		{`local a a, a = 1, 2 return a`, lua.LNumber(1)},
		{`local x, a = 1, "old" a = not x and 5 return a`, lua.LFalse},
		{`local function f(s) local n s, n = (s .. "x"), 1 return s end return f("a")`, lua.LString("ax")},
		{`local function g(s) return s .. "y" end local function f(s) local n s, n = g(s), 1 return s end return f("a")`, lua.LString("ay")},
		{`local function f(p, ...) local a, b = 1, 2 p = (...) return a + b end return f(0, 9)`, lua.LNumber(3)},
		{`local function f(a, ...) local b, c b, c = ... return c end return f(1, 2, 3)`, lua.LNumber(3)},
		{`return 010 + 0x10`, lua.LNumber(26)},
		{`return "010" + 0`, lua.LNumber(10)},
		{`return -" 2e2 "`, lua.LNumber(-200)},
		{`local x = 1 local f = function() return x end pcall(error, "e") x = 2 return f()`, lua.LNumber(2)},
		{`local f pcall(function() local y = "mine" f = function() return y end error("e") end) local z = 5 return f()`, lua.LString("mine")},
		{`local function f() return coroutine.yield(1) end local co = coroutine.wrap(function() return f() end) co() return co(2)`, lua.LNumber(2)},
	} {
		if got, err := v.Call(function(t, v, "return function(...) "+test.body+" end")); err != nil || got != test.want {
			t.Errorf("%s: %v, %v; want %v", test.body, got, err, test.want)
		}
	}
}

func TestLongConcatChains(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	chain := strings.TrimSuffix(strings.Repeat("'x' .. ", 300), " .. ")
	got, err := v.Call(function(t, v, "return function() return "+chain+" end"))
	if err != nil || got != lua.LString(strings.Repeat("x", 300)) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"return 1", "local a, b = b, a", "x = 'a' .. f(...)", "for i = 1, 2 do end", "function a.b:c(...) return ... end", "goto x ::x::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if s, err := vm.Compile("s.lua", source); err == nil && s == nil {
			t.Error("neither script nor error")
		}
	})
}
