package luaapi

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// text gives a string or a number as text; false for everything else.
func text(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return vm.NumberText(float64(v)), true
	case *lua.LUserData:
		n, ok := v.Value.(bigNumber)
		return string(n), ok
	}
	return "", false
}

// checkName raises unless name is a header name.
func checkName(L *lua.LState, name string) {
	if !core.IsToken(core.Bytes(name)) {
		raise(L, "no header can be named "+describe(lua.LString(visible(name)))+": a name is letters, digits and signs such as '-', no line break")
	}
}

// checkValue raises unless value may stand on the wire.
func checkValue(L *lua.LState, what, value string) {
	if !core.IsValue(core.Bytes(value)) {
		raise(L, what+" has a line break (CR or LF), NUL or another control character in it")
	}
}

// headerText gives what a script assigned to a header as text, or raises.
func headerText(L *lua.LState, name string, v lua.LValue) string {
	s, ok := text(v)
	if !ok {
		raise(L, "header "+name+" is set to a string or a number, not to a "+v.Type().String())
	}
	checkValue(L, "the value of header "+name, s)
	return s
}

// visible replaces control characters, for messages.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// wanted gives a string that a script assigned to a field, or raises.
func wanted(L *lua.LState, field string, v lua.LValue) string {
	s, ok := text(v)
	if !ok {
		raise(L, field+" is set to a string, not to a "+v.Type().String())
	}
	return s
}

func str(b []byte) lua.LValue { return lua.LString(b) }

// optional is nil for an empty text.
func optional(s string) lua.LValue {
	if s == "" {
		return lua.LNil
	}
	return lua.LString(s)
}
