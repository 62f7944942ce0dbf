package vm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

const (
	loading vm.Phase = 1 << iota
	request
	response
)

func TestAFunctionIsCalledInItsPhaseOnly(t *testing.T) {
	b := base(t, vm.Options{
		Phases:    []string{"load", "on_request", "on_response"},
		LoadPhase: loading,
		Funcs: []vm.Func{
			{Name: "gw.respond", Phases: request | response, Do: func(a vm.Args) int { return a.Return(lua.LTrue) }},
			{Name: "gw.file.read", Phases: loading, Do: func(a vm.Args) int { return a.Return(lua.LString("text")) }},
		},
	})
	v := vm.New(b)
	respond := function(t, v, `local text = gw.file.read() return function() return gw.respond() end`)
	read := function(t, v, `return function() return gw.file.read() end`)
	v.Phase = request
	if got, err := v.Call(respond); err != nil || got != lua.LTrue {
		t.Errorf("got %v, %v", got, err)
	}
	_, err := v.Call(read)
	if want := "s.lua:1: gw.file.read cannot be called in on_request; it may be called in load"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = v.Load(compile(t, "s.lua", "\ngw.respond()"))
	if want := "s.lua:2: gw.respond cannot be called in load; it may be called in on_request, on_response"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if v.Phase != request {
		t.Error("loading changed the phase")
	}
}

func TestArguments(t *testing.T) {
	b := base(t, vm.Options{Funcs: []vm.Func{
		{Name: "f.string", Do: func(a vm.Args) int { return a.Return(lua.LString(a.String(1))) }},
		{Name: "f.number", Do: func(a vm.Args) int { return a.Return(lua.LNumber(a.Number(1))) }},
		{Name: "f.int", Do: func(a vm.Args) int { return a.Return(lua.LNumber(a.OptInt(1, 7))) }},
		{Name: "f.table", Do: func(a vm.Args) int { return a.Return(lua.LNumber(a.Readable(1).Len())) }},
		{Name: "f.write", Do: func(a vm.Args) int { a.Writable(1).RawSetInt(1, lua.LTrue); return 0 }},
		{Name: "f.call", Do: func(a vm.Args) int { a.Call(lua.MultRet, a.Function(1), lua.LNumber(1)); return a.Len() - 1 }},
		{Name: "f.fail", Do: func(a vm.Args) int { return a.Fail("no %d", 1) }},
		{Name: "f.any", Do: func(a vm.Args) int { return a.Return(a.Any(1)) }},
	}})
	for _, test := range []struct{ body, want string }{
		{`return f.string("a")`, "a"}, {`return f.string(1e15)`, "1000000000000000"}, {`return f.string(1.5)`, "1.5"},
		{`return f.string()`, "bad argument #1 to 'f.string' (string expected, got no value)"},
		{`return f.string(nil)`, "bad argument #1 to 'f.string' (string expected, got nil)"},
		{`return f.number("0x10")`, "16"}, {`return f.number("x")`, "bad argument #1 to 'f.number' (number expected, got string)"},
		{`return f.int()`, "7"}, {`return f.int(3.9)`, "3"}, {`return f.int(-3.9)`, "-3"}, {`return f.int(0/0)`, "0"}, {`return f.int(1e300)`, "9007199254740992"},
		{`return f.table({1, 2})`, "2"}, {`return f.table(1)`, "bad argument #1 to 'f.table' (table expected, got number)"},
		{`return f.write(f)`, "f is read-only"}, {`return f.call(function(n) return n + 1 end)`, "2"}, {`return f.call(1)`, "function expected, got number"},
		{`local ok, e = f.fail() return e`, "no 1"}, {`return f.any()`, "value expected"}, {`return f.any(nil) == nil and "nil"`, "nil"},
	} {
		v := vm.New(b)
		got, err := v.Call(function(t, v, "return function() "+test.body+" end"))
		text := fmt.Sprint(got)
		if n, ok := got.(lua.LNumber); ok {
			text = vm.TextOf(n)
		}
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, test.want) {
			t.Errorf("%s: %s; want %s", test.body, text, test.want)
		}
	}
}

func TestNamesCannotBeTakenTwice(t *testing.T) {
	nothing := func(vm.Args) int { return 0 }
	for _, o := range []vm.Options{
		{Funcs: []vm.Func{{Name: "pcall", Do: nothing}}},
		{Funcs: []vm.Func{{Name: "a.b", Do: nothing}, {Name: "a.b", Do: nothing}}},
		{Funcs: []vm.Func{{Name: "a.b", Do: nothing}, {Name: "a", Do: nothing}}},
		{Funcs: []vm.Func{{Name: "a", Do: nothing}, {Name: "a.b", Do: nothing}}},
		{Funcs: []vm.Func{{Name: "a.", Do: nothing}}},
		{Funcs: []vm.Func{{Name: "a"}}},
		{Funcs: []vm.Func{{Name: "a.b", Do: nothing}}, Values: map[string]lua.LValue{"a.b": lua.LTrue}},
	} {
		if _, err := vm.NewBase(o); err == nil {
			t.Errorf("%+v passed", o)
		}
	}
}

func TestNumberText(t *testing.T) {
	for f, want := range map[float64]string{
		1234567.5: "1234567.5", 100. / 2: "50", 1e15: "1000000000000000", 1 << 53: "9007199254740992", 1e20: "100000000000000000000",
		1e21: "1e+21", 0.1: "0.1", 1e-7: "0.0000001", -0.5: "-0.5", 12345678.9: "12345678.9", 123456789012345680: "123456789012345680",
	} {
		if got := vm.NumberText(f); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
	for f, want := range map[float64]string{1e15: "1000000000000000", 0.1: "0.1", 1e-5: "1e-05", 1e21: "1e+21", 1. / 3: "0.33333333333333",
		3.14159265358979: "3.1415926535898", 1e100: "1e+100", 123456.789: "123456.789", 1234567.5: "1234567.5"} {
		if got := vm.TextOf(lua.LNumber(f)); got != want {
			t.Errorf("tostring(%g): %s, want %s", f, got, want)
		}
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"1", "-0x1F", " 1e5 ", ".5", "5.", "inf", "1_0", "1e999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := vm.ParseNumber(s)
		if !ok {
			return
		}
		if again, ok := vm.ParseNumber(vm.NumberText(n)); ok && again != n {
			t.Errorf("%q is %v, but its text is %s", s, n, vm.NumberText(n))
		}
	})
}
