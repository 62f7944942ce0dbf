package vm

import (
	lua "github.com/yuin/gopher-lua"
)

// An environment is the table of globals of one script: an empty table in front of what the script defined while it was
// loaded (store, nil when that was nothing), in front of the libraries. It must stay empty: gopher-lua writes a key that exists without
// asking __newindex.
type environment struct {
	script  *Script
	table   *lua.LTable
	store   *lua.LTable
	loading bool
}

// envWrite is __newindex of all environments and their mark.
var envWrite = &lua.LFunction{IsG: true, GFunction: writeGlobal}

func (v *VM) newEnv(s *Script) *environment {
	e := &environment{script: s, table: &lua.LTable{Metatable: v.base.envMT}, loading: true}
	if s.usesG {
		e.define(v.base, lua.LString("_G"), e.table)
	}
	v.envs[e.table] = e
	return e
}

// close ends loading.
func (e *environment) close() { e.loading = false }

// define gives the script a global of its own. The first one puts a store in front of the libraries; scripts without any share one
// metatable, which is a good part of what a script takes in a VM.
func (e *environment) define(b *Base, name, value lua.LValue) {
	if e.store == nil {
		e.store = smallTable(4)
		e.store.Metatable = b.storeMT
		e.table.Metatable = envMetatable(e.store, b.envMT.RawGetString("__newindex"))
	}
	e.store.RawSet(name, value)
}

// envMetatable is that of an environment whose globals are found in a table; write is envWrite.
func envMetatable(globals *lua.LTable, write lua.LValue) *lua.LTable {
	mt := smallTable(4)
	mt.RawSetString("__index", globals)
	mt.RawSetString("__newindex", write)
	mt.RawSetString("__metatable", lua.LFalse)
	return mt
}

// smallTable makes a table for so many names; gopher-lua's own take 2 KiB with the first.
func smallTable(names int) *lua.LTable { return (*lua.LState)(nil).CreateTable(0, names) }

// envOf is the environment whose table t is, or nil.
func (v *VM) envOf(t *lua.LTable) *environment {
	if mt, ok := t.Metatable.(*lua.LTable); ok && mt.RawGetString("__newindex") == envWrite {
		return v.envs[t]
	}
	return nil
}

// Readable is the table whose raw contents are t's, for natives that go past metatables: what a frozen table shows, a copy
// of all globals for _G, t itself otherwise. It must only be read.
func (v *VM) Readable(t *lua.LTable) *lua.LTable {
	if t.Metatable == lua.LNil {
		return t
	}
	if e := v.envOf(t); e != nil {
		return e.merged(v.base.globals)
	}
	return Thaw(t)
}

func (e *environment) merged(globals *lua.LTable) *lua.LTable {
	all := &lua.LTable{Metatable: lua.LNil}
	for _, t := range []*lua.LTable{globals, e.store} {
		if t == nil {
			continue
		}
		for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
			all.RawSet(k, v)
		}
	}
	return all
}

func writeGlobal(L *lua.LState) int {
	v := From(L)
	t, _ := L.Get(1).(*lua.LTable)
	e := v.envs[t]
	name := clip(plainText(L.Get(2)))
	if e == nil {
		L.RaiseError("cannot set global '%s' here", name)
	}
	if !e.loading {
		L.RaiseError("cannot set global '%s' after the script is loaded; write 'local %s = ...'",
			name, name)
	}
	if L.Get(3) == lua.LNil && v.base.globals.RawGet(L.Get(2)) != lua.LNil {
		L.RaiseError("cannot remove global '%s': it is built in", name)
	}
	if L.Get(2) == lua.LString("_G") {
		L.RaiseError("cannot set global '_G'")
	}
	e.define(v.base, L.Get(2), L.Get(3))
	return 0
}
