package stdlib

import (
	"math"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// tableAccess are the basic functions that look into tables or past their metatables. All of them know frozen tables.
func tableAccess() []vm.Func {
	t := param("t", "table")
	step := vm.Func{Name: "next", Do: next, Doc: "The key and value that follow key in a table (nil: the first), nil at the end.",
		Params: params(t, opt("key", "any")), Returns: params(param("key", "any"), param("value", "any"))}
	forward := step.Function()
	upward := (&vm.Func{Name: "ipairs", Do: nextItem}).Function()
	return []vm.Func{
		step,
		{Name: "pairs", Doc: "For use in for: all keys and values of a table, in no particular order.", Params: params(t),
			Returns: params(param("next", "function"), t, param("key", "nil")),
			Do:      func(a vm.Args) int { return pairs(a, forward) }},
		{Name: "ipairs", Doc: "For use in for: the items 1, 2, ... of a list up to the first nil.", Params: params(t),
			Returns: params(param("next", "function"), t, param("index", "integer")),
			Do:      func(a vm.Args) int { return a.Return(upward, a.Table(1), lua.LNumber(0)) }},
		{Name: "rawget", Doc: "t[key] without metamethods.", Params: params(t, param("key", "any")),
			Returns: params(param("value", "any")), Do: rawGet},
		{Name: "rawset", Doc: "t[key] = value without metamethods. Read-only tables raise.",
			Params: params(t, param("key", "any"), param("value", "any")), Returns: params(t), Do: rawSet},
		{Name: "rawequal", Doc: "a == b without metamethods.", Params: params(param("a", "any"), param("b", "any")),
			Returns: params(param("equal", "boolean")), Do: rawEqual},
		{Name: "rawlen", Doc: "#v of a table or string without metamethods.", Params: params(param("v", "table|string")),
			Returns: params(param("length", "integer")), Do: rawLen},
		{Name: "getmetatable", Doc: "The metatable of a value, or its field __metatable if there is one, or nil.",
			Params: params(param("value", "any")), Returns: params(param("metatable", "any")), Do: getMetatable},
		{Name: "setmetatable", Doc: "Sets (or with nil removes) the metatable of a table and returns the table.",
			Params: params(t, param("metatable", "table?")), Returns: params(t), Do: setMetatable},
	}
}

func next(a vm.Args) int {
	t := a.Readable(1)
	key, value := t.Next(a.Get(2))
	if key == lua.LNil {
		a.L.Push(lua.LNil)
		return 1
	}
	a.L.Push(key)
	a.L.Push(value)
	return 2
}

func pairs(a vm.Args, forward lua.LValue) int {
	if u, ok := a.Get(1).(*lua.LUserData); ok {
		if handler := a.L.GetMetaField(u, "__pairs"); handler != lua.LNil {
			a.Call(3, handler, u)
			return 3
		}
	}
	t := a.Table(1)
	if !vm.IsFrozen(t) { // a frozen table's contents must not come into a script's hands
		t = a.VM.Readable(t)
	}
	return a.Return(forward, t, lua.LNil)
}

func nextItem(a vm.Args) int {
	n, _ := a.Get(2).(lua.LNumber)
	i := int(n) + 1
	v := item(a.Readable(1), i)
	if v == lua.LNil {
		a.L.Push(lua.LNil)
		return 1
	}
	a.L.Push(lua.LNumber(i))
	a.L.Push(v)
	return 2
}

func rawGet(a vm.Args) int {
	a.L.Push(a.Readable(1).RawGet(a.Any(2)))
	return 1
}

func rawSet(a vm.Args) int {
	t := a.Writable(1)
	key := a.Any(2)
	if n, ok := key.(lua.LNumber); key == lua.LNil || ok && math.IsNaN(float64(n)) {
		a.Raise("table index is nil or NaN")
	}
	t.RawSet(key, a.Any(3))
	a.L.SetTop(1)
	return 1
}

func rawEqual(a vm.Args) int {
	a.L.Push(lua.LBool(a.L.RawEqual(a.Any(1), a.Any(2))))
	return 1
}

func rawLen(a vm.Args) int {
	switch v := a.Get(1).(type) {
	case *lua.LTable:
		a.L.Push(lua.LNumber(a.VM.Readable(v).Len()))
	case lua.LString:
		a.L.Push(lua.LNumber(len(v)))
	default:
		a.Bad(1, "table or string expected")
	}
	return 1
}

func getMetatable(a vm.Args) int {
	a.L.Push(a.L.GetMetatable(a.Any(1)))
	return 1
}

func setMetatable(a vm.Args) int {
	t := a.Table(1)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		a.Raise("cannot change a protected metatable")
	}
	switch mt := a.Any(2).(type) {
	case *lua.LNilType:
		t.Metatable = mt
	case *lua.LTable:
		if first, _ := mt.Next(lua.LNil); first == lua.LNil && vm.IsFrozen(mt) {
			a.Bad(2, "%s is read-only and cannot serve as a metatable", vm.FrozenName(mt))
		}
		t.Metatable = mt
	default:
		a.Bad(2, "nil or table expected")
	}
	a.L.SetTop(1)
	return 1
}
