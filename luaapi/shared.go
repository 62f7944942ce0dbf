package luaapi

import (
	"math"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/store"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.shared: values, counters and lists that all VMs see, over reloads too.

var (
	storeParam = p("store", "string", "name of the store; it is made when it is first used, at most 64")
	keyParam   = p("key", "string", "")
	plainParam = p("value", "string|number|boolean", "")
	notStored  = p("err", "string?", "`too large`: one entry may take a sixteenth of the store's capacity")
)

var sharedFuncs = []vm.Func{
	{Name: "gw.shared.get",
		Doc: "Reads a value that all VMs share; nil when it is absent, expired or was forgotten because the store was full: 32 MiB, unless a " +
			"`[shared.NAME]` says otherwise. What was used longest ago is forgotten first.",
		Params:  list(storeParam, keyParam),
		Returns: list(p("value", "string|number|boolean|nil", ""), p("err", "string?", "`a list`")),
		Do: func(a vm.Args) int {
			v, err := storeArg(a).Get(argText(a, 2))
			if err != nil {
				return a.Fail("%s", err)
			}
			a.L.Push(storedValue(v))
			return 1
		}},
	{Name: "gw.shared.set", Phases: phaseRun,
		Doc: "Stores a string, number or boolean for all VMs, in the place of what the key has; nil takes the key away. A table is refused: store " +
			"gw.json.encode(t), or keep it in gw.cache.",
		Params:  list(storeParam, keyParam, p("value", "string|number|boolean|nil", ""), opt("ttl", "number", "seconds until it is gone; default never")),
		Returns: list(p("ok", "boolean?", ""), notStored),
		Do: func(a vm.Args) int {
			st, key := storeArg(a), argText(a, 2)
			if !a.Has(3) {
				st.Delete(key)
				a.L.Push(lua.LTrue)
				return 1
			}
			return stored(a, lua.LTrue, st.Set(key, storable(a, 3), ttlArg(a, 4)))
		}},
	{Name: "gw.shared.add", Phases: phaseRun,
		Doc:     "Stores a value if the key is absent, and tells whether it was: of many who try at once, one is told true.",
		Params:  list(storeParam, keyParam, plainParam, opt("ttl", "number", "seconds until it is gone; default never")),
		Returns: list(p("added", "boolean?", ""), notStored),
		Do: func(a vm.Args) int {
			added, err := storeArg(a).Add(argText(a, 2), storable(a, 3), ttlArg(a, 4))
			return stored(a, lua.LBool(added), err)
		}},
	{Name: "gw.shared.incr", Phases: phaseRun,
		Doc: "Adds to a number and gives the sum, exactly, however many count at once. An absent key counts from 0 and lives for ttl; adding does " +
			"not prolong it.",
		Params:  list(storeParam, keyParam, opt("delta", "number", "default 1"), opt("ttl", "number", "seconds, for an absent key; default for ever")),
		Returns: list(p("sum", "number?", ""), p("err", "string?", "`not a number`")),
		Do: func(a vm.Args) int {
			delta := a.OptNumber(3, 1)
			if math.IsNaN(delta) || math.IsInf(delta, 0) {
				a.Bad(3, "a finite number expected")
			}
			sum, err := storeArg(a).Incr(argText(a, 2), lua.LNumber(delta), ttlArg(a, 4))
			return stored(a, sum, err)
		}},
	{Name: "gw.shared.cas", Phases: phaseRun,
		Doc: "Compare and swap: stores new if the key has old, and tells whether it had. nil stands for an absent key, in both places. Of many who " +
			"try at once with one old value, one succeeds. Without a ttl the entry ends when it would have ended.",
		Params: list(storeParam, keyParam, p("old", "string|number|boolean|nil", ""), p("new", "string|number|boolean|nil", ""),
			opt("ttl", "number", "seconds until it is gone")),
		Returns: list(p("swapped", "boolean?", ""), p("current", "string|number|boolean|nil", "what the key has now; the error after nil")),
		Do:      compareAndSwap},
	{Name: "gw.shared.delete", Phases: phaseRun,
		Doc:     "Takes a key away, whatever it has, and tells whether it was there.",
		Params:  list(storeParam, keyParam),
		Returns: list(p("deleted", "boolean", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LBool(storeArg(a).Delete(argText(a, 2))))
			return 1
		}},
	{Name: "gw.shared.ttl",
		Doc:     "Tells for how many more seconds a key will be there: `math.huge` for ever; nil when it is not there.",
		Params:  list(storeParam, keyParam),
		Returns: list(p("seconds", "number?", "")),
		Do: func(a vm.Args) int {
			left, there := storeArg(a).TTL(argText(a, 2))
			switch {
			case !there:
				a.L.Push(lua.LNil)
			case left == 0:
				a.L.Push(lua.LNumber(math.Inf(1)))
			default:
				a.L.Push(number(left.Seconds()))
			}
			return 1
		}},
	{Name: "gw.shared.expire", Phases: phaseRun,
		Doc:     "Sets for how many more seconds a key will be there, list or value, and tells whether it is.",
		Params:  list(storeParam, keyParam, opt("ttl", "number", "seconds; default for ever")),
		Returns: list(p("there", "boolean", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LBool(storeArg(a).Expire(argText(a, 2), ttlArg(a, 3))))
			return 1
		}},
	pushFunc("gw.shared.lpush", store.Front, "first"),
	pushFunc("gw.shared.rpush", store.Back, "last"),
	popFunc("gw.shared.lpop", store.Front, "first"),
	popFunc("gw.shared.rpop", store.Back, "last"),
	{Name: "gw.shared.llen",
		Doc:     "Tells how many values a list has; 0 when it is not there.",
		Params:  list(storeParam, keyParam),
		Returns: list(p("length", "integer?", ""), p("err", "string?", "`not a list`")),
		Do: func(a vm.Args) int {
			n, err := storeArg(a).Len(argText(a, 2))
			return stored(a, number(float64(n)), err)
		}},
}

func pushFunc(name string, at store.End, where string) vm.Func {
	return vm.Func{Name: name, Phases: phaseRun,
		Doc:     "Puts a value into a list as its " + where + " one and tells how long the list is now. An absent key becomes a list, which is gone once it is empty.",
		Params:  list(storeParam, keyParam, plainParam),
		Returns: list(p("length", "integer?", ""), p("err", "string?", "`not a list`, or `too large`: a list may take a sixteenth of the store's capacity")),
		Do: func(a vm.Args) int {
			n, err := storeArg(a).Push(argText(a, 2), storable(a, 3), at)
			return stored(a, number(float64(n)), err)
		}}
}

func popFunc(name string, at store.End, where string) vm.Func {
	return vm.Func{Name: name, Phases: phaseRun,
		Doc:     "Takes the " + where + " value off a list: of many who take at once, each gets another. nil when there is none.",
		Params:  list(storeParam, keyParam),
		Returns: list(p("value", "string|number|boolean|nil", ""), p("err", "string?", "`not a list`")),
		Do: func(a vm.Args) int {
			v, err := storeArg(a).Pop(argText(a, 2), at)
			return stored(a, storedValue(v), err)
		}}
}

func compareAndSwap(a vm.Args) int {
	ttl := store.Keep
	if a.Has(5) {
		ttl = ttlArg(a, 5)
	}
	old, new := optStorable(a, 3), optStorable(a, 4)
	swapped, now, err := storeArg(a).CompareAndSwap(argText(a, 2), old, new, ttl)
	if err != nil {
		return a.Fail("%s", err)
	}
	a.L.Push(lua.LBool(swapped))
	a.L.Push(storedValue(now))
	return 2
}

// stored pushes a result, or nil and why there is none.
func stored(a vm.Args, result lua.LValue, err error) int {
	if err != nil {
		return a.Fail("%s", err)
	}
	a.L.Push(result)
	return 1
}

func storeArg(a vm.Args) *store.Store {
	st := worldOf(a.VM).shared.store(argText(a, 1))
	if st == nil {
		a.Bad(1, "there are %d stores already: a store's name is fixed, what varies belongs in the key", storeLimit)
	}
	return st
}

func ttlArg(a vm.Args, i int) time.Duration {
	if !a.Has(i) {
		return 0
	}
	n := a.Number(i)
	if !(n > 0 && n < 1e9) {
		a.Bad(i, "a ttl is seconds above 0")
	}
	return seconds(n)
}

// storable is an argument that a store can hold.
func storable(a vm.Args, i int) lua.LValue {
	switch v := a.Get(i).(type) {
	case lua.LString, lua.LNumber, lua.LBool:
		return v
	case *lua.LTable:
		a.Bad(i, "a string, number or boolean expected, got table: store gw.json.encode(t), or keep it in gw.cache")
	default:
		a.Bad(i, "a string, number or boolean expected, got %s", v.Type())
	}
	return nil
}

// optStorable is nil where the argument is.
func optStorable(a vm.Args, i int) lua.LValue {
	if !a.Has(i) {
		return nil
	}
	return storable(a, i)
}

func storedValue(v lua.LValue) lua.LValue {
	if v == nil {
		return lua.LNil
	}
	return v
}
