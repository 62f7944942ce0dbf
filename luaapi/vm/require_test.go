package vm_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// setMetatable is the one function of the standard library that classes need.
func setMetatable(a vm.Args) int {
	a.Writable(1).Metatable = a.Table(2)
	a.L.SetTop(1)
	return 1
}

func library(t *testing.T, files map[string]string) *vm.Base {
	lib := map[string]*vm.Script{}
	for name, source := range files {
		lib[name] = compile(t, "lib/"+name+".lua", source)
	}
	return base(t, vm.Options{Lib: lib, Funcs: []vm.Func{{Name: "setmetatable", Do: setMetatable}}})
}

func TestRequireLoadsOnceAndReadOnly(t *testing.T) {
	b := library(t, map[string]string{
		"count": `local n = 0 local M = {sub = {1, 2}} function M.next() n = n + 1 return n end M.again = M function M.spoil() M.x = 1 end return M`,
		"name":  `return ...`,
		"none":  ``,
		"class": `local C = {} C.__index = C C.kind = "class" function C.new(n) return setmetatable({n = n}, C) end function C:get() return self.n end return C`,
		"call":  `local t = setmetatable({base = 1}, {__call = function(self, a) return a + self.base end, __index = function(t, k) return k .. "?" end}) return t`,
		"acme":  `local c = require("count") return {next = c.next}`,
	})
	v := vm.New(b)
	for _, test := range []struct {
		body string
		want lua.LValue
	}{
		{`return require("count") == require("count")`, lua.LTrue},
		{`return require("count").next() + require("count").next()`, lua.LNumber(3)},
		{`return require("acme").next()`, lua.LNumber(3)},
		{`return require("count").again == require("count")`, lua.LTrue},
		{`return #require("count").sub`, lua.LNumber(2)},
		{`return require("name")`, lua.LString("name")},
		{`return require("none")`, lua.LTrue},
		{`local C = require("class") local o = C.new(5) o.n = o.n + 1 return o:get() .. o.kind`, lua.LString("6class")},
		{`return require("call")(2)`, lua.LNumber(3)},
		{`return require("call").missing`, lua.LString("missing?")},
	} {
		if got, err := v.Call(function(t, v, "return function() "+test.body+" end")); err != nil || got != test.want {
			t.Errorf("%s: %v, %v", test.body, got, err)
		}
	}
	for _, test := range []struct{ body, want string }{
		{`require("count").x = 1`, "s.lua:1: count is read-only: cannot set 'x'"},
		{`require("count").sub[1] = 1`, "s.lua:1: count.sub is read-only: cannot set '1'"},
		{`require("count").spoil()`, "lib/count.lua:1: count is read-only: cannot set 'x'"},
		{`require("class").get = nil`, "s.lua:1: class is read-only: cannot set 'get'"},
		{`require("class").new(1).__index.get = nil`, "s.lua:1: class is read-only: cannot set 'get'"},
		{`require("class").__index = {}`, "class is read-only: a metamethod of it was changed"},
		{`require("call").x = 1`, "s.lua:1: call is read-only: cannot set 'x'"},
		{`setmetatable(require("call"), {})`, "s.lua:1: call is read-only"},
		{`require("nothing")`, "s.lua:1: module 'nothing' not found; there are: acme, call, class, count, name, none"},
		{`require("../count")`, "s.lua:1: module '../count' not found"},
		{`require()`, "bad argument #1 to 'require'"},
	} {
		_, err := v.Call(function(t, v, "return function() "+test.body+" end"))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) && !strings.Contains(err.Error(), "argument") {
			t.Errorf("%s: %v; want %s", test.body, err, test.want)
		}
	}
	if got, err := v.Call(function(t, v, `return function() return require("class").new(7):get() end`)); err != nil || got != lua.LNumber(7) {
		t.Errorf("the class is broken: %v, %v", got, err)
	}
}

func TestRequireInACircle(t *testing.T) {
	v := vm.New(library(t, map[string]string{"a": `require("b")`, "b": "\nrequire('c')", "c": `return require("a")`, "ok": `return 1`}))
	for range 2 {
		_, err := v.Load(compile(t, "s.lua", `require("a")`))
		if err == nil || err.Error() != "lib/c.lua:1: cyclic require: a -> b -> c -> a" {
			t.Fatal(err)
		}
	}
	got, err := v.Load(compile(t, "s.lua", `pcall(require, "a") return require("ok")`))
	if err != nil || got != lua.LNumber(1) {
		t.Fatal(got, err)
	}
}

func TestALibraryThatFailsIsTriedAgain(t *testing.T) {
	fail := true
	b := base(t, vm.Options{
		Lib: map[string]*vm.Script{"lib": compile(t, "lib.lua", `early = 1 mayfail() return {v = early}`)},
		Funcs: []vm.Func{{Name: "mayfail", Do: func(a vm.Args) int {
			if fail {
				a.Raise("not yet")
			}
			return 0
		}}},
	})
	v := vm.New(b)
	f := function(t, v, `return function() return require("lib").v end`)
	if _, err := v.Call(f); err == nil || err.Error() != "lib.lua:1: not yet" {
		t.Fatal(err)
	}
	fail = false
	if got, err := v.Call(f); err != nil || got != lua.LNumber(1) {
		t.Fatal(got, err)
	}
}
