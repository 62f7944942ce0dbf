package luaapi

import (
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.shared: values and counters that all VMs see, over reloads too.

var storeParam = p("store", "string", "name of the store; it is made when it is first used, at most 64")

var sharedFuncs = []vm.Func{
	{Name: "gw.shared.get",
		Doc:     "Reads a value that all VMs share; nil when it is absent, expired or was forgotten because the store (32 MiB) was full.",
		Params:  list(storeParam, p("key", "string", "")),
		Returns: list(p("value", "string|number|boolean|nil", "")),
		Do: func(a vm.Args) int {
			a.L.Push(storedValue(storeArg(a).get(argText(a, 2))))
			return 1
		}},
	{Name: "gw.shared.set",
		Doc:     "Stores a string, number or boolean for all VMs; nil takes the key away. A value of more than 2 MiB is not stored.",
		Params:  list(storeParam, p("key", "string", ""), p("value", "string|number|boolean|nil", ""), opt("ttl", "number", "seconds until it is gone; default never")),
		Returns: list(p("ok", "boolean?", ""), errParam),
		Do: func(a vm.Args) int {
			st, key := storeArg(a), argText(a, 2)
			if !a.Has(3) {
				st.delete(key)
				a.L.Push(lua.LTrue)
				return 1
			}
			if !st.set(key, storable(a, 3), ttlArg(a, 4), false) {
				return a.Fail("too large")
			}
			a.L.Push(lua.LTrue)
			return 1
		}},
	{Name: "gw.shared.add",
		Doc:     "Stores a value if the key is absent, and tells whether it was: of many who try at once, one is told true.",
		Params:  list(storeParam, p("key", "string", ""), p("value", "string|number|boolean", ""), opt("ttl", "number", "seconds until it is gone; default never")),
		Returns: list(p("added", "boolean", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LBool(storeArg(a).set(argText(a, 2), storable(a, 3), ttlArg(a, 4), true)))
			return 1
		}},
	{Name: "gw.shared.incr",
		Doc: "Adds to a number and gives the sum, exactly, however many count at once. An absent key counts from 0 and lives for ttl; adding does " +
			"not prolong it.",
		Params:  list(storeParam, p("key", "string", ""), opt("delta", "number", "default 1"), opt("ttl", "number", "seconds, for an absent key; default for ever")),
		Returns: list(p("sum", "number?", ""), p("err", "string?", "the value is no number")),
		Do: func(a vm.Args) int {
			delta := a.OptNumber(3, 1)
			sum, ok := storeArg(a).incr(argText(a, 2), delta, ttlArg(a, 4))
			if !ok {
				return a.Fail("not a number")
			}
			a.L.Push(number(sum))
			return 1
		}},
	{Name: "gw.shared.delete",
		Doc:     "Takes a key away and tells whether it was there.",
		Params:  list(storeParam, p("key", "string", "")),
		Returns: list(p("deleted", "boolean", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LBool(storeArg(a).delete(argText(a, 2))))
			return 1
		}},
}

func storeArg(a vm.Args) *store {
	st := worldOf(a.VM).shared.store(argText(a, 1))
	if st == nil {
		a.Bad(1, "there are %d stores already: a store's name is fixed, what varies belongs in the key", storeLimit)
	}
	return st
}

func ttlArg(a vm.Args, i int) time.Duration {
	seconds := a.OptNumber(i, 0)
	if a.Has(i) && !(seconds > 0 && seconds < 1e9) {
		a.Bad(i, "a ttl is seconds above 0")
	}
	return max(time.Duration(seconds*float64(time.Second)), 0)
}

func storable(a vm.Args, i int) any {
	switch v := a.Get(i).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return float64(v)
	case lua.LBool:
		return bool(v)
	}
	a.Bad(i, "a string, number or boolean expected, got %s: tables are stored as JSON", a.Get(i).Type())
	return nil
}

func storedValue(v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case float64:
		return number(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}
