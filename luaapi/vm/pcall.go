package vm

import (
	"runtime/debug"

	lua "github.com/yuin/gopher-lua"
)

// ownFuncs are the functions that only the machine itself can offer.
func ownFuncs() []Func {
	value := []Param{{Name: "...", Type: "any"}}
	protected := []Param{{Name: "ok", Type: "boolean"}, {Name: "...", Type: "any"}}
	return append([]Func{
		{
			Name:    "pcall",
			Doc:     "Calls f with the arguments in protected mode: true and its results, or false and the error. A spent budget is not caught.",
			Params:  append([]Param{{Name: "f", Type: "function"}}, value...),
			Returns: protected,
			Do:      pcall,
		},
		{
			Name:    "xpcall",
			Doc:     "Calls f in protected mode; in case of an error, handler makes the second result from it. The handler runs after f has ended.",
			Params:  []Param{{Name: "f", Type: "function"}, {Name: "handler", Type: "function"}},
			Returns: protected,
			Do:      xpcall,
		},
		{
			Name: "error",
			Doc:  "Raises an error. A string or number gets the position of the caller in front (level 1), of the caller's caller (2), or none (0).",
			Params: []Param{{Name: "message", Type: "any"},
				{Name: "level", Type: "integer", Optional: true}},
			Do: raiseError,
		},
		{
			Name:    "require",
			Doc:     "Loads a library of scripts/lib once per VM and returns what it returned, read-only.",
			Params:  []Param{{Name: "name", Type: "string"}},
			Returns: []Param{{Name: "library", Type: "any"}},
			Do:      require,
		},
	}, coroutineFuncs()...)
}

func pcall(a Args) int {
	if f := a.Any(1); !a.callable(f) {
		return a.Return(lua.LFalse, lua.LString("attempt to call a "+f.Type().String()+" value"))
	}
	if value, failed := a.VM.threadOf(a.L).try(a.VM, a.L.GetTop()-1); failed {
		return a.Return(lua.LFalse, value)
	}
	a.L.Insert(lua.LTrue, 1)
	return a.L.GetTop()
}

func (a Args) callable(f lua.LValue) bool {
	return f.Type() == lua.LTFunction || a.L.GetMetaField(f, "__call") != lua.LNil
}

func xpcall(a Args) int {
	handler := a.Any(2)
	if f := a.Get(1); !a.callable(f) {
		return a.Return(lua.LFalse, lua.LString("attempt to call a "+f.Type().String()+" value"))
	}
	t := a.VM.threadOf(a.L)
	a.L.SetTop(1)
	value, failed := t.try(a.VM, 0)
	if !failed {
		a.L.Insert(lua.LTrue, 1)
		return a.L.GetTop()
	}
	a.L.SetTop(0)
	a.L.Push(handler)
	a.L.Push(value)
	if _, failed := t.try(a.VM, 1); failed {
		return a.Return(lua.LFalse, lua.LString("error in error handling"))
	}
	a.L.Insert(lua.LFalse, 1)
	return a.L.GetTop()
}

// try calls the function that lies under its nargs arguments on the stack. It leaves the results there, or takes everything
// away and returns the error value. A spent budget and a Go panic go on upwards.
func (t *thread) try(v *VM, nargs int) (value lua.LValue, failed bool) {
	m := t.mark(nargs)
	*t.errorFunc() = true // gopher-lua would close all upvalues of all frames
	nested := v.nested
	defer func() {
		if *t.errorFunc() = m.errorFunc; !failed {
			return
		}
		thrown := recover()
		api, ok := thrown.(*lua.ApiError)
		if !ok {
			if _, ok := thrown.(*goPanic); !ok {
				thrown = &goPanic{thrown, string(debug.Stack())}
			}
			panic(thrown)
		}
		t.closeSince(m)
		if v.budget.expired {
			panic(api)
		}
		t.unwind(m)
		v.nested = nested
		value = api.Object
	}()
	failed = true
	t.L.Call(nargs, lua.MultRet)
	failed = false
	return nil, false
}

func raiseError(a Args) int {
	value := a.Get(1)
	level := a.OptInt(2, 1)
	if n, ok := value.(lua.LNumber); ok && level > 0 {
		value = lua.LString(TextOf(n))
	}
	if s, ok := value.(lua.LString); ok && level > 0 {
		value = lua.LString(a.VM.threadOf(a.L).where(level) + string(s))
	}
	a.L.Error(value, 0)
	return 0
}

// where is "script:line: " of the function that many levels above the running native, "" if that is no Lua function.
func (t *thread) where(level int) string {
	f := t.top()
	for ; level > 0 && f.ok(); level-- {
		f = f.parent()
	}
	if !f.ok() || f.fn() == nil || f.fn().IsG {
		return ""
	}
	return (&Error{Script: f.fn().Proto.SourceName, Line: f.line()}).Error()
}
