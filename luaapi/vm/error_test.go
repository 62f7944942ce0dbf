package vm_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func TestErrorsSayWhereAndWhat(t *testing.T) {
	v := vm.New(base(t, vm.Options{Funcs: []vm.Func{{Name: "gw.broken", Do: func(vm.Args) int { panic("boom") }}}}))
	for _, test := range []struct{ body, want string }{
		{`local user = {} if user.role.name == "x" then end`, "s.lua:2: attempt to index a non-table object(nil) with key 'name'"},
		{`error("text")`, "s.lua:2: text"},
		{`error("text", 0)`, "s.lua:2: text"},
		{`error({code = 401, message = "no"})`, `s.lua:2: {code=401, message="no"}`},
		{`error({})`, "s.lua:2: error object is an empty table"},
		{`error(nil)`, "s.lua:2: error object is nil"},
		{`error()`, "s.lua:2: error object is nil"},
		{`error(12)`, "s.lua:2: 12"},
		{`error(true)`, "s.lua:2: error object is a boolean"},
		{`error("http://a:80/b: c", 0)`, "s.lua:2: http://a:80/b: c"},
		{`error("host:80: refused", 0)`, "s.lua:2: host:80: refused"},
		{`error("s.lua:7: told", 0)`, "s.lua:7: told"},
		{`missing()`, "s.lua:2: attempt to call 'missing', which is not a function"},
		{`local t = {} t.missing()`, "s.lua:2: attempt to call 'missing', which is not a function"},
		{`gw.missing(1)`, "s.lua:2: attempt to call 'missing', which is not a function"},
		{`return 1 + {}`, "s.lua:2: cannot perform add operation between number and table"},
		{`return "x" + 1`, "s.lua:2: attempt to perform arithmetic on string 'x'"},
		{`return "x" .. nil`, "s.lua:2: attempt to concatenate a nil value (operand 2 of 2)"},
		{`coroutine.wrap(function() error("in") end)()`, "s.lua:2: in"},
		{`local ok, e = pcall(error, {code = 1}) error(e)`, "s.lua:2: {code=1}"},
		{"local function f()\n error('deep', 2) end\n\nf()", "s.lua:5: deep"},
		{`pcall(pcall)  error(select(2, pcall(nil)), 0)`, "s.lua:2: attempt to call a nil value"},
	} {
		_, err := v.Call(function(t, v, "local select = function(n, ...) local _, x = ... return x end return function()\n"+test.body+"\nend"))
		if err == nil {
			t.Errorf("%s: passed", test.body)
		} else if e := raised(t, err); e.Error() != test.want || e.Panic || e.Timeout {
			t.Errorf("%s: %v; want %s", test.body, err, test.want)
		}
	}
}

func TestAPanicOfABindingEndsTheCallOnly(t *testing.T) {
	b := base(t, vm.Options{Funcs: []vm.Func{{Name: "gw.broken", Do: func(vm.Args) int {
		var m map[string]int
		//lint:ignore SA5000 the panic is what is tested
		m["x"] = 1
		return 0
	}}}})
	for _, body := range []string{
		`gw.broken()`,
		`pcall(gw.broken)`,
		`while true do pcall(pcall, gw.broken) end`,
		`xpcall(gw.broken, function() return 1 end)`,
		`coroutine.wrap(function() gw.broken() end)()`,
		`coroutine.resume(coroutine.create(function() pcall(function() gw.broken() end) end))`,
		`return setmetatable and 1 or gw.broken()`,
		`pcall(function() coroutine.wrap(function() coroutine.wrap(gw.f or function() gw.broken() end)() end)() end)`,
	} {
		pool := vm.NewPool(b, vm.PoolOptions{})
		v, err := pool.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Call(function(t, v, "return function() "+body+" end"))
		if err == nil {
			t.Errorf("%s: passed", body)
			continue
		}
		e := raised(t, err)
		if !e.Panic || !strings.Contains(e.Message, "assignment to entry in nil map") || e.Stack == "" {
			t.Errorf("%s: %+v", body, e)
		}
		if got, err := v.Call(function(t, v, `return function() return 1 end`)); err != nil || got != lua.LNumber(1) {
			t.Errorf("%s: afterwards %v, %v", body, got, err)
		}
		pool.Give(v)
		if s := pool.Stats(); s.Retired[vm.RetiredPanic] != 1 || s.Size != 0 {
			t.Errorf("%s: %+v", body, s)
		}
	}
}

func TestABudgetIsNotCaught(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	_, err := v.Call(function(t, v, `local caught return function()
		pcall(function() while true do end end)
		error("went on")
	end`))
	if e := raised(t, err); !e.Timeout || e.Line != 2 {
		t.Fatal(err)
	}
}

func TestACallWithinACallIsRefused(t *testing.T) {
	var inner error
	b := base(t, vm.Options{Funcs: []vm.Func{{Name: "again", Do: func(a vm.Args) int {
		_, inner = a.VM.Call(a.Function(1))
		return 0
	}}}})
	v := vm.New(b)
	if _, err := v.Call(function(t, v, `return function() again(function() end) end`)); err != nil {
		t.Fatal(err)
	}
	if inner == nil {
		t.Fatal("passed")
	}
}
