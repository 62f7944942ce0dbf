package luaapi

import (
	"errors"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// ScriptError is what went wrong in a filter, for the log: nothing of it is for the client.
type ScriptError struct {
	Stage   string
	Filter  string
	Script  string // file's name, such as "auth.lua"; "" when it is unknown
	Line    int    // 0 when it is unknown
	Message string // a raised table with its fields
	Timeout bool   // the budget was spent
	Stack   string // Go stack when Go code panicked
}

// Error gives "auth.lua:12: message (stage auth, filter jwt)".
func (e *ScriptError) Error() string {
	text := e.Message + " (stage " + e.Stage + ", filter " + e.Filter + ")"
	if e.Stack != "" {
		text += "\n" + e.Stack
	}
	switch {
	case e.Script == "":
		return text
	case e.Line == 0:
		return e.Script + ": " + text
	}
	return e.Script + ":" + strconv.Itoa(e.Line) + ": " + text
}

// scriptError names the filter in which a call failed.
func scriptError(t *turn, err error) *ScriptError {
	e := &ScriptError{Stage: t.filter.stage, Filter: t.filter.name, Script: t.filter.script.file}
	var raised *vm.Error
	if !errors.As(err, &raised) {
		e.Message = err.Error()
		return e
	}
	if raised.Script != "" {
		e.Script, e.Line = raised.Script, raised.Line
	}
	e.Message, e.Timeout, e.Stack = raised.Message, raised.Timeout, raised.Stack
	if wrong := settingOf(err); wrong != nil {
		e.Message = wrong.name + ": " + wrong.text
	}
	if table, ok := raised.Value.(*lua.LTable); ok {
		if text, err := encodeJSON(nil, table, maxLogged); err == nil {
			e.Message = string(text)
		}
	}
	return e
}

// wrongResult is the error of a function that returned what it may not.
func wrongResult(fn *lua.LFunction, message string) error {
	return &vm.Error{Script: fn.Proto.SourceName, Line: fn.Proto.LineDefined, Message: message}
}

// broken is how an exchange fails whose filter did.
func broken(err error) error { return core.Fail(500, "internal error", err) }
