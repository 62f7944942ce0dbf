package vm

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Error is what went wrong in a script: a raised value, a spent budget, a syntax error, or a Go panic of a binding.
type Error struct {
	Script  string     // name of the script, "" when it is unknown
	Line    int        // line in it, 0 when it is unknown
	Message string     // without the position; a raised table is described with its fields
	Timeout bool       // the time budget was spent
	Panic   bool       // Go code panicked; the VM is unfit and its pool drops it
	Value   lua.LValue // what was raised, position included if it is a string; nil for syntax errors and panics
	Stack   string     // Go stack of a panic
}

// Error returns "script:line: message".
func (e *Error) Error() string {
	if e.Script == "" {
		return e.Message
	}
	if e.Line == 0 {
		return e.Script + ": " + e.Message
	}
	return e.Script + ":" + strconv.Itoa(e.Line) + ": " + e.Message
}

// splitPosition cuts the position that Lua puts before a message: "auth.lua:12: text". Only names of scripts that this VM knows
// count: a message may begin with "host:80: ".
func (v *VM) splitPosition(text string) (script string, line int, message string, ok bool) {
	for from := 0; ; {
		i := strings.IndexByte(text[from:], ':')
		if i < 0 {
			return "", 0, text, false
		}
		i += from
		from = i + 1
		digits := strings.IndexByte(text[from:], ':')
		if digits <= 0 {
			continue
		}
		n, err := strconv.Atoi(text[from : from+digits])
		if err == nil && v.knows(text[:i]) {
			return text[:i], n, strings.TrimPrefix(text[from+digits+1:], " "), true
		}
	}
}

// knows tells whether a script of that name is loaded, is being loaded, or can be required.
func (v *VM) knows(script string) bool {
	for _, e := range v.envs {
		if e.script.Name == script {
			return true
		}
	}
	for _, s := range v.base.options.Lib {
		if s.Name == script {
			return true
		}
	}
	return false
}

// describe renders a raised value for a log: strings as they are, tables with their plain fields.
func describe(value lua.LValue) string {
	switch v := value.(type) {
	case lua.LString:
		return string(v)
	case *lua.LTable:
		if text := describeTable(v); text != "" {
			return text
		}
		return "error object is an empty table"
	case *lua.LNilType:
		return "error object is nil"
	case lua.LNumber:
		return TextOf(v)
	}
	return "error object is a " + value.Type().String()
}

const describedFields = 16

func describeTable(t *lua.LTable) string {
	var b strings.Builder
	n := 0
	t = Thaw(t)
	for k, v := t.Next(lua.LNil); k != lua.LNil && n < describedFields; k, v = t.Next(k) {
		if n++; n > 1 {
			b.WriteString(", ")
		}
		switch k := k.(type) {
		case lua.LString:
			b.WriteString(clip(string(k)))
		default:
			fmt.Fprintf(&b, "[%s]", clip(plainText(k)))
		}
		b.WriteByte('=')
		if s, ok := v.(lua.LString); ok {
			b.WriteString(strconv.Quote(clip(string(s))))
		} else {
			b.WriteString(plainText(v))
		}
	}
	if n == 0 {
		return ""
	}
	return "{" + b.String() + "}"
}

func plainText(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return TextOf(n)
	}
	switch v.Type() {
	case lua.LTString, lua.LTBool, lua.LTNil:
		return v.String()
	}
	return v.Type().String()
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}
