package vm_test

import (
	"errors"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// base makes a Base with the options' own functions and no standard library.
func base(t testing.TB, o vm.Options) *vm.Base {
	t.Helper()
	b, err := vm.NewBase(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compile(t testing.TB, name, source string) *vm.Script {
	t.Helper()
	s, err := vm.Compile(name, source)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// function loads a script that returns a function.
func function(t testing.TB, v *vm.VM, source string) *lua.LFunction {
	t.Helper()
	r, err := v.Load(compile(t, "s.lua", source))
	if err != nil {
		t.Fatal(err)
	}
	f, ok := r.(*lua.LFunction)
	if !ok {
		t.Fatalf("the script returned %v, not a function", r)
	}
	return f
}

func raised(t testing.TB, err error) *vm.Error {
	t.Helper()
	var e *vm.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, not a *vm.Error", err)
	}
	return e
}

func TestCallReturnsTheFirstResult(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	f := function(t, v, `return function(a, b) return a .. "-" .. b, 2 end`)
	got, err := v.Call(f, lua.LString("x"), lua.LNumber(1<<53))
	if err != nil || got != lua.LString("x-9007199254740992") {
		t.Fatalf("got %v, %v", got, err)
	}
	if v.L().GetTop() != 0 {
		t.Fatalf("the stack holds %d values", v.L().GetTop())
	}
}

func TestConcatAssignedToItsOwnParameter(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	f := function(t, v, `return function(s) s = s .. "x" s = s .. s .. "y" return s end`)
	if got, err := v.Call(f, lua.LString("a")); err != nil || got != lua.LString("axaxy") {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestAnEndlessLoopEndsWithItsBudget(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, source := range []string{
		`return function() while true do end end`,
		`return function() while true do pcall(function() while true do end end) end end`,
		`return function() while true do pcall(error, "x") end end`,
		`return function() local co = coroutine.wrap(function() while true do end end) while true do co() end end`,
		`return function() while true do coroutine.wrap(function() end)() end end`,
	} {
		_, err := v.Call(function(t, v, source)) // which would not return
		e := raised(t, err)
		if !e.Timeout {
			t.Errorf("%s: %v", source, err)
		}
		if e.Script != "s.lua" || e.Line != 1 {
			t.Errorf("%s: position %s:%d", source, e.Script, e.Line)
		}
		if got, err := v.Call(function(t, v, `return function() return 1 end`)); err != nil || got != lua.LNumber(1) {
			t.Errorf("afterwards: %v, %v", got, err)
		}
	}
}

func BenchmarkEmptyCall(b *testing.B) {
	v := vm.New(base(b, vm.Options{}))
	f := function(b, v, `return function() end`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Call(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTakeAndGiveBack(b *testing.B) {
	p := vm.NewPool(base(b, vm.Options{}), vm.PoolOptions{})
	b.ReportAllocs()
	for b.Loop() {
		v, err := p.Take(nil)
		if err != nil {
			b.Fatal(err)
		}
		p.Give(v)
	}
}
