package luaapi

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.json: JSON that keeps its shape. Arrays carry a mark, so that [] and {} stay what they were; null is a value of its own, so that
// lists keep their length; numbers that a float cannot hold keep their digits.

// jsonArray is the metatable that marks a table as an array.
var jsonArray = metatable("__name", lua.LString("json array"))

// jsonNullValue is the value of gw.json.null.
type jsonNullValue struct{}

var jsonNull lua.LValue = &lua.LUserData{Value: jsonNullValue{}, Metatable: metatable("__tostring", goFunction(func(L *lua.LState) int {
	L.Push(lua.LString("null"))
	return 1
}))}

var jsonFuncs = []vm.Func{
	{Name: "gw.json.decode",
		Doc: "Reads JSON. Arrays and objects stay what they are when they are encoded again, null is gw.json.null, and a number that Lua " +
			"cannot hold exactly keeps its digits. Of two members with one name the last counts.",
		Params:  list(p("text", "string", "")),
		Returns: list(p("value", "any", ""), p("err", "string?", "where it is no JSON")),
		Do: func(a vm.Args) int {
			return pushDecoded(a, core.Bytes(argText(a, 1)), nil)
		}},
	{Name: "gw.json.encode",
		Doc: "Writes JSON. A table with the keys 1 to n is an array, every other an object, an empty one `{}`; gw.json.array makes an empty " +
			"array. A value without a JSON form (a function, NaN, a list with a hole) raises.",
		Params:  list(p("value", "any", "")),
		Returns: list(p("text", "string", "")),
		Do: func(a vm.Args) int {
			c := cachesOf(a.VM)
			out, err := encodeJSON(c.buffer[:0], a.Any(1), stringLimit(a))
			if err != nil {
				a.Bad(1, "%s", err)
			}
			if c.buffer = out; cap(out) > 64<<10 {
				c.buffer = nil
			}
			a.CheckString(len(out))
			a.L.Push(str(out))
			return 1
		}},
	{Name: "gw.json.get",
		Doc:     "Reads one value of a JSON text, as req:json_get does.",
		Params:  list(p("text", "string", ""), p("path", "string", "names, and indexes from 0, joined by dots")),
		Returns: list(p("value", "any", "nil when the path leads nowhere"), p("err", "string?", "where it is no JSON")),
		Do: func(a vm.Args) int {
			return pushFound(a, core.Bytes(argText(a, 1)), nil)
		}},
	{Name: "gw.json.array",
		Doc:     "Marks a table as an array, so that it is `[]` when it is empty.",
		Params:  list(opt("items", "table", "default: a new table")),
		Returns: list(p("array", "table", "the same table")),
		Do: func(a vm.Args) int {
			t := newTable()
			if a.Has(1) {
				t = a.Writable(1)
			}
			if t.Metatable != lua.LNil && t.Metatable != lua.LValue(jsonArray) {
				a.Bad(1, "a table with a metatable of its own cannot be marked")
			}
			t.Metatable = jsonArray
			a.L.Push(t)
			return 1
		}},
}

// pushDecoded returns the value of a JSON text, or nil and why there is none.
func pushDecoded(a vm.Args, text []byte, err error) int {
	if err != nil {
		return pushFailure(a, err)
	}
	a.VM.Charge(len(text) / 4)
	v, err := decodeJSON(a.L, text)
	if err != nil {
		return pushFailure(a, err)
	}
	a.L.Push(v)
	return 1
}

// pushFound returns the value in a JSON text to which argument 2 leads.
func pushFound(a vm.Args, text []byte, err error) int {
	path := argText(a, 2)
	if err == nil && len(text) == 0 {
		err = errors.New("not JSON: the text is empty")
	}
	if err != nil {
		return pushFailure(a, err)
	}
	a.VM.Charge(len(text) / 16)
	v, err := getJSON(a.L, text, jsonPath(path))
	if err != nil {
		return pushFailure(a, err)
	}
	if v == jsonNull {
		v = lua.LNil
	}
	a.L.Push(v)
	return 1
}

// newBigNumber makes the value of a number that a float cannot hold. Arithmetic and comparison take it as the nearest float; text,
// headers and JSON show its digits.
func newBigNumber(digits string) lua.LValue {
	return &lua.LUserData{Value: bigNumber(digits), Metatable: bigNumberMeta}
}

var bigNumberMeta = metatable(
	"__tostring", goFunction(func(L *lua.LState) int { L.Push(lua.LString(bigText(L.Get(1)))); return 1 }),
	"__concat", goFunction(func(L *lua.LState) int { L.Push(lua.LString(bigText(L.Get(1)) + bigText(L.Get(2)))); return 1 }),
	"__eq", goFunction(func(L *lua.LState) int { L.Push(lua.LBool(bigText(L.Get(1)) == bigText(L.Get(2)))); return 1 }),
	"__lt", bigCompare(func(x, y float64) bool { return x < y }),
	"__le", bigCompare(func(x, y float64) bool { return x <= y }),
	"__add", bigArithmetic(func(x, y float64) float64 { return x + y }),
	"__sub", bigArithmetic(func(x, y float64) float64 { return x - y }),
	"__mul", bigArithmetic(func(x, y float64) float64 { return x * y }),
	"__div", bigArithmetic(func(x, y float64) float64 { return x / y }),
	"__unm", bigArithmetic(func(x, _ float64) float64 { return -x }),
)

func bigText(v lua.LValue) string {
	s, _ := text(v)
	return s
}

func bigFloat(L *lua.LState, v lua.LValue) float64 {
	f, ok := vm.ToNumber(lua.LString(bigText(v)))
	if !ok {
		raise(L, "attempt to perform arithmetic on a "+v.Type().String()+" value")
	}
	return f
}

func bigArithmetic(do func(x, y float64) float64) *lua.LFunction {
	return goFunction(func(L *lua.LState) int {
		L.Push(lua.LNumber(do(bigFloat(L, L.Get(1)), bigFloat(L, L.Get(2)))))
		return 1
	})
}

func bigCompare(do func(x, y float64) bool) *lua.LFunction {
	return goFunction(func(L *lua.LState) int {
		L.Push(lua.LBool(do(bigFloat(L, L.Get(1)), bigFloat(L, L.Get(2)))))
		return 1
	})
}
