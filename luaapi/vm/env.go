package vm

import (
	lua "github.com/yuin/gopher-lua"
)

// An environment is the table of globals of one script: an empty table in front of what the script defined while it was
// loaded (store), in front of the libraries. It must stay empty: gopher-lua writes a key that exists without asking __newindex.
type environment struct {
	script  *Script
	table   *lua.LTable
	store   *lua.LTable
	meta    *lua.LTable
	loading bool
}

// envWrite is __newindex of all environments and their mark.
var envWrite = &lua.LFunction{IsG: true, GFunction: writeGlobal}

func (v *VM) newEnv(s *Script) *environment {
	e := &environment{
		script:  s,
		table:   &lua.LTable{},
		store:   &lua.LTable{},
		meta:    &lua.LTable{Metatable: lua.LNil},
		loading: true,
	}
	up := &lua.LTable{Metatable: lua.LNil}
	up.RawSetString("__index", v.base.globals)
	e.store.Metatable = up
	if s.usesG {
		e.store.RawSetString("_G", e.table)
	}
	e.meta.RawSetString("__index", e.store)
	e.meta.RawSetString("__newindex", envWrite)
	e.meta.RawSetString("__metatable", lua.LFalse)
	e.table.Metatable = e.meta
	v.envs[e.table] = e
	return e
}

// close ends loading. A script that defined nothing reads the libraries directly.
func (e *environment) close() {
	e.loading = false
	if k, _ := e.store.Next(lua.LNil); k == lua.LNil {
		e.meta.RawSetString("__index", e.store.Metatable.(*lua.LTable).RawGetString("__index"))
	}
}

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
	L.RawSet(e.store, L.Get(2), L.Get(3))
	return 0
}
