package vm

import (
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// require loads a library into this VM once. Its result is made read-only: what one request writes into it, the next would see.
func require(a Args) int {
	name := a.String(1)
	v := a.VM
	if result, ok := v.modules[name]; ok {
		a.L.Push(result)
		return 1
	}
	script := v.base.options.Lib[name]
	if script == nil {
		a.Raise("module '%s' not found; there are: %s", name, libraryNames(v.base.options.Lib))
	}
	for _, p := range v.pending {
		if p == name {
			a.Raise("cyclic require: %s -> %s", strings.Join(v.pending, " -> "), name)
		}
	}
	result := v.loadLibrary(a, name, script)
	if t, ok := result.(*lua.LTable); ok {
		freezeInPlace(name, t, &v.sealed)
	}
	if result == lua.LNil {
		result = lua.LTrue
	}
	if v.modules == nil {
		v.modules = map[string]lua.LValue{}
	}
	v.modules[name] = result
	a.L.Push(result)
	return 1
}

func (v *VM) loadLibrary(a Args, name string, script *Script) lua.LValue {
	v.pending = append(v.pending, name)
	env := v.newEnv(script)
	phase := v.Phase
	v.Phase = v.base.options.LoadPhase
	loaded := false
	defer func() {
		v.pending = v.pending[:len(v.pending)-1]
		v.Phase = phase
		env.close()
		if !loaded {
			delete(v.envs, env.table)
		}
	}()
	a.Call(1, &lua.LFunction{Env: env.table, Proto: script.proto}, lua.LString(name))
	result := a.L.Get(-1)
	a.L.Pop(1)
	loaded = true
	return result
}

func libraryNames(lib map[string]*Script) string {
	if len(lib) == 0 {
		return "none"
	}
	names := make([]string, 0, len(lib))
	for n := range lib {
		names = append(names, n)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// Requiring is the name of the library whose file runs now; "" when none does.
func (v *VM) Requiring() string {
	if n := len(v.pending); n > 0 {
		return v.pending[n-1]
	}
	return ""
}
