package vm

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Args is one call of a Func: its arguments, the VM, and the ways to fail. It lives as long as the call.
type Args struct {
	L    *lua.LState
	VM   *VM
	Func *Func
}

// Len is the number of arguments.
func (a Args) Len() int { return a.L.GetTop() }

// Get is argument i (from 1), nil when it is absent.
func (a Args) Get(i int) lua.LValue { return a.L.Get(i) }

// Has tells whether argument i was given and is not nil.
func (a Args) Has(i int) bool { return a.L.Get(i) != lua.LNil }

// String is argument i as a string; numbers are converted as tostring does. Anything else raises.
func (a Args) String(i int) string {
	switch v := a.L.Get(i).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return TextOf(v)
	}
	a.expected(i, "string")
	return ""
}

// OptString is argument i as String, or or when it is absent or nil.
func (a Args) OptString(i int, or string) string {
	if !a.Has(i) {
		return or
	}
	return a.String(i)
}

// Number is argument i as a number; strings are converted as arithmetic does. Anything else raises.
func (a Args) Number(i int) float64 {
	switch v := a.L.Get(i).(type) {
	case lua.LNumber:
		return float64(v)
	case lua.LString:
		if f, ok := ParseNumber(string(v)); ok {
			return f
		}
	}
	a.expected(i, "number")
	return 0
}

// OptNumber is argument i as Number, or or when it is absent or nil.
func (a Args) OptNumber(i int, or float64) float64 {
	if !a.Has(i) {
		return or
	}
	return a.Number(i)
}

// Int is argument i as Number, cut to an integer towards zero and held within the range of int; NaN is 0.
func (a Args) Int(i int) int { return clampInt(a.Number(i)) }

// OptInt is argument i as Int, or or when it is absent or nil.
func (a Args) OptInt(i int, or int) int {
	if !a.Has(i) {
		return or
	}
	return a.Int(i)
}

func clampInt(f float64) int {
	switch {
	case f != f:
		return 0
	case f >= 1<<53:
		return 1 << 53
	case f <= -1<<53:
		return -1 << 53
	}
	return int(f)
}

// Bool is argument i as Lua sees truth: nil and false are false.
func (a Args) Bool(i int) bool { return lua.LVAsBool(a.L.Get(i)) }

// Table is argument i as a table, frozen or not: read it through Thaw, write it only after Writable. Anything else raises.
func (a Args) Table(i int) *lua.LTable {
	if t, ok := a.L.Get(i).(*lua.LTable); ok {
		return t
	}
	a.expected(i, "table")
	return nil
}

// Readable is argument i as a table to read: a frozen table's contents. Never write it.
func (a Args) Readable(i int) *lua.LTable { return a.VM.Readable(a.Table(i)) }

// Writable is argument i as a table that may be written; read-only tables raise.
func (a Args) Writable(i int) *lua.LTable {
	t := a.Table(i)
	if IsFrozen(t) {
		a.Raise("%s is read-only", FrozenName(t))
	}
	if env := a.VM.envOf(t); env != nil {
		a.Raise("the table of globals cannot be changed this way")
	}
	return t
}

// Function is argument i as a function. Anything else raises.
func (a Args) Function(i int) *lua.LFunction {
	if f, ok := a.L.Get(i).(*lua.LFunction); ok {
		return f
	}
	a.expected(i, "function")
	return nil
}

// Any is argument i; an absent one raises, nil does not.
func (a Args) Any(i int) lua.LValue {
	if i > a.L.GetTop() {
		a.Bad(i, "value expected")
	}
	return a.L.Get(i)
}

// Return pushes results and returns their number, for Do's return.
func (a Args) Return(values ...lua.LValue) int {
	for _, v := range values {
		a.L.Push(v)
	}
	return len(values)
}

// Fail pushes nil and a message: the form of an expected failure.
func (a Args) Fail(format string, args ...any) int {
	a.L.Push(lua.LNil)
	a.L.Push(lua.LString(fmt.Sprintf(format, args...)))
	return 2
}

// Raise raises an error with the position of the calling script. It does not return.
func (a Args) Raise(format string, args ...any) {
	a.L.RaiseError("%s", fmt.Sprintf(format, args...))
}

// Bad raises "bad argument #i to 'name' (reason)". It does not return.
func (a Args) Bad(i int, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if a.byColon() {
		a.Raise("call it with a dot: %s(...)", a.Func.Name)
	}
	if strings.Contains(a.Func.Name, ":") {
		if i--; i == 0 {
			a.Raise("calling '%s' on bad self (%s)", a.Func.Name, reason)
		}
	}
	a.Raise("bad argument #%d to '%s' (%s)", i, a.Func.Name, reason)
}

// byColon tells whether the first argument is the library in which the function stands, as in gw.json:decode(text).
func (a Args) byColon() bool {
	t, ok := a.L.Get(1).(*lua.LTable)
	i := strings.LastIndexByte(a.Func.Name, '.')
	return ok && i > 0 && IsFrozen(t) && FrozenName(t) == a.Func.Name[:i]
}

func (a Args) expected(i int, want string) {
	got := "no value"
	if i <= a.L.GetTop() {
		got = a.L.Get(i).Type().String()
	}
	a.Bad(i, "%s expected, got %s", want, got)
}

// CheckString raises unless a string of n bytes is within the limit, and charges the VM for making it. Natives call it
// before they build the string.
func (a Args) CheckString(n int) { a.VM.Grow(n) }

// Call calls Lua function f from within a native and leaves nret results on the stack (lua.MultRet: all). Errors pass
// through. A yield inside f raises.
func (a Args) Call(nret int, f lua.LValue, args ...lua.LValue) {
	a.L.Push(f)
	for _, v := range args {
		a.L.Push(v)
	}
	a.L.Call(len(args), nret)
}

// Try is Call in protected mode, as pcall is: it tells whether f raised, and what. All results of f lie on the stack above what lay there
// before; after a failure nothing does. A spent budget and Go panics go on upwards.
func (a Args) Try(f lua.LValue, args ...lua.LValue) (raised lua.LValue, failed bool) {
	a.L.Push(f)
	for _, v := range args {
		a.L.Push(v)
	}
	return a.VM.threadOf(a.L).try(a.VM, len(args))
}
