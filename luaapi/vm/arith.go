package vm

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// stringMetatable gives strings their methods and Lua 5.1's arithmetic: stock's own coercion takes "010" for octal and
// knows nothing of " 2e2 ". The machine asks these metamethods first.
func stringMetatable(t *tree) *lua.LTable {
	mt := &lua.LTable{Metatable: lua.LNil}
	methods := t.tables["string"]
	if methods == nil {
		methods = &lua.LTable{Metatable: lua.LNil}
	}
	mt.RawSetString("__index", methods)
	mt.RawSetString("__metatable", lua.LString("string"))
	for name, op := range operators {
		mt.RawSetString(name, &lua.LFunction{IsG: true, GFunction: arithmetic(name, op)})
	}
	return mt
}

var operators = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": modulo,
	"__pow": math.Pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

func modulo(a, b float64) float64 {
	m := math.Mod(a, b)
	if b > 0 && m < 0 || b < 0 && m > 0 {
		m += b
	}
	return m
}

func arithmetic(name string, op func(a, b float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		left, right := L.Get(1), L.Get(2)
		if name == "__unm" {
			right = left
		}
		a, okA := ToNumber(left)
		b, okB := ToNumber(right)
		if okA && okB {
			L.Push(lua.LNumber(op(a, b)))
			return 1
		}
		for _, v := range [2]lua.LValue{left, right} { // the other operand may have its own operator
			if v.Type() == lua.LTString {
				continue
			}
			if handler := L.GetMetaField(v, name); handler != lua.LNil {
				L.Push(handler)
				L.Push(left)
				L.Push(right)
				L.Call(2, 1)
				return 1
			}
		}
		bad := left
		if okA {
			bad = right
		}
		what := "a " + bad.Type().String() + " value"
		if s, ok := bad.(lua.LString); ok {
			what = "string '" + clip(string(s)) + "'"
		}
		L.RaiseError("attempt to perform arithmetic on %s", what)
		return 0
	}
}
