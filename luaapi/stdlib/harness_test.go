package stdlib_test

import (
	"errors"
	"testing"

	"github.com/moongate/moongate/luaapi/stdlib"
	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func base(t testing.TB, o vm.Options) *vm.Base {
	t.Helper()
	o.Funcs = append(stdlib.Funcs(), o.Funcs...)
	if o.Values == nil {
		o.Values = map[string]lua.LValue{}
	}
	for name, v := range stdlib.Values() {
		o.Values[name] = v
	}
	b, err := vm.NewBase(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compile(t testing.TB, source string) *vm.Script {
	t.Helper()
	s, err := vm.Compile("s.lua", source)
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	return s
}

// function is a Lua function with that body.
func function(t testing.TB, v *vm.VM, body string) *lua.LFunction {
	t.Helper()
	r, err := v.Load(compile(t, "return function(...) "+body+"\nend"))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*lua.LFunction)
}

func failure(t testing.TB, err error) *vm.Error {
	t.Helper()
	var e *vm.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, not a *vm.Error", err)
	}
	return e
}
