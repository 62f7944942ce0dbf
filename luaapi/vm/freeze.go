package vm

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// A frozen table is an empty table whose metatable reads from the real one and refuses writes. frozenWrite is its mark:
// scripts cannot reach it, since __metatable hides the metatable. Everything that goes past metatables (rawset, next,
// table.insert, ...) asks Thaw or IsFrozen first.
var (
	frozenWrite = &lua.LFunction{IsG: true, GFunction: refuseWrite}
	frozenLen   = &lua.LFunction{IsG: true, GFunction: lengthOfFrozen}
)

// Freeze makes t and all tables in it read-only and returns the table to hand out; name stands in the error of a write.
// It takes t over: whoever keeps it must not write it again. Frozen tables are safe for use by many VMs at once.
// Functions in t must be Go functions without state.
func Freeze(name string, t *lua.LTable) *lua.LTable {
	f := freezer{done: map[*lua.LTable]*lua.LTable{}}
	return f.freeze(name, t)
}

// IsFrozen tells whether t refuses writes.
func IsFrozen(t *lua.LTable) bool {
	mt, ok := t.Metatable.(*lua.LTable)
	return ok && mt.RawGetString("__newindex") == frozenWrite
}

// Thaw returns the table that a frozen table shows, for reading only; any other table is returned as it is.
func Thaw(t *lua.LTable) *lua.LTable {
	if mt, ok := t.Metatable.(*lua.LTable); ok && mt.RawGetString("__newindex") == frozenWrite {
		if real, ok := mt.RawGetString("__self").(*lua.LTable); ok {
			return real
		}
	}
	return t
}

type freezer struct{ done map[*lua.LTable]*lua.LTable }

func (f *freezer) freeze(name string, t *lua.LTable) *lua.LTable {
	if IsFrozen(t) {
		return t
	}
	if p := f.done[t]; p != nil {
		return p
	}
	p := &lua.LTable{Metatable: frozenMetatable(name, t)}
	f.done[t] = p
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if nested, ok := v.(*lua.LTable); ok {
			t.RawSet(k, f.freeze(name+"."+plainText(k), nested))
		}
	}
	return p
}

func frozenMetatable(name string, real *lua.LTable) *lua.LTable {
	mt := &lua.LTable{Metatable: lua.LNil}
	mt.RawSetString("__index", real)
	mt.RawSetString("__self", real)
	mt.RawSetString("__newindex", frozenWrite)
	mt.RawSetString("__len", frozenLen)
	mt.RawSetString("__metatable", lua.LFalse)
	mt.RawSetString("__name", lua.LString(name))
	return mt
}

// freezeInPlace makes t itself read-only, for tables that are referred to already (what a library returned). Its contents
// move to a table behind it. Keys that begin with "__" stay in t too, so that t goes on serving as a metatable; sealed
// collects those tables. Functions keep their upvalues.
func freezeInPlace(name string, t *lua.LTable, sealed *[]seal) {
	if IsFrozen(t) {
		return
	}
	real := &lua.LTable{Metatable: lua.LNil}
	kept := seal{table: t, name: name}
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		real.RawSet(k, v)
		if s, ok := k.(lua.LString); ok && strings.HasPrefix(string(s), "__") {
			kept.keys, kept.values = append(kept.keys, string(s)), append(kept.values, v)
		}
	}
	own, _ := t.Metatable.(*lua.LTable)
	*t = lua.LTable{Metatable: frozenMetatable(name, real)}
	for i, k := range kept.keys {
		t.RawSetString(k, kept.values[i])
	}
	if kept.keys != nil {
		*sealed = append(*sealed, kept)
	}
	if own != nil {
		inherit(t, real, own)
	}
	for k, v := real.Next(lua.LNil); k != lua.LNil; k, v = real.Next(k) {
		if nested, ok := v.(*lua.LTable); ok {
			freezeInPlace(name+"."+plainText(k), nested, sealed)
		}
	}
}

// inherit lets a frozen table keep what its own metatable did: inheritance, calls, operators.
func inherit(t, real, own *lua.LTable) {
	mt := t.Metatable.(*lua.LTable)
	for k, v := own.Next(lua.LNil); k != lua.LNil; k, v = own.Next(k) {
		s, ok := k.(lua.LString)
		if ok && mt.RawGetString(string(s)) == lua.LNil {
			mt.RawSetString(string(s), v)
		}
	}
	index := own.RawGetString("__index")
	if handler, ok := index.(*lua.LFunction); ok {
		index = &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
			L.Replace(1, t) // the handler sees the frozen table, never the one behind it
			L.Insert(handler, 1)
			L.Call(2, 1)
			return 1
		}}
	}
	if index != lua.LNil {
		behind := &lua.LTable{Metatable: lua.LNil}
		behind.RawSetString("__index", index)
		real.Metatable = behind
	}
}

// seal remembers the metamethods of a frozen table that serves as a metatable. They are raw keys, so a script could
// overwrite them; intact puts them back.
type seal struct {
	table  *lua.LTable
	name   string
	keys   []string
	values []lua.LValue
}

func (s *seal) intact() bool {
	ok := true
	for i, k := range s.keys {
		if s.table.RawGetString(k) != s.values[i] {
			s.table.RawSetString(k, s.values[i])
			ok = false
		}
	}
	return ok
}

func refuseWrite(L *lua.LState) int {
	name := "this table"
	if t, ok := L.Get(1).(*lua.LTable); ok {
		name = FrozenName(t)
	}
	L.RaiseError("%s is read-only: cannot set '%s'", name, clip(plainText(L.Get(2))))
	return 0
}

// FrozenName is the name that a frozen table was given, for messages.
func FrozenName(t *lua.LTable) string {
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		if name, ok := mt.RawGetString("__name").(lua.LString); ok {
			return string(name)
		}
	}
	return "this table"
}

func lengthOfFrozen(L *lua.LState) int {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		return 0
	}
	L.Push(lua.LNumber(Thaw(t).Len()))
	return 1
}
