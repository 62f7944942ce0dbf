package stdlib

import (
	"fmt"
	"strings"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func basicFuncs() []vm.Func {
	return []vm.Func{
		{Name: "assert", Doc: "Raises message (default \"assertion failed!\") when value is nil or false; otherwise returns all its arguments.",
			Params: params(param("value", "any"), opt("message", "any"), param("...", "any")), Returns: params(param("...", "any")), Do: assert},
		{Name: "type", Doc: "The type of a value: \"nil\", \"number\", \"string\", \"boolean\", \"table\", \"function\", \"thread\" or \"userdata\".",
			Params: params(param("value", "any")), Returns: params(param("type", "string")), Do: typeOf},
		{Name: "tostring", Doc: "The text of a value. Whole numbers below 1e21 are written in full, others with 14 digits.",
			Params: params(param("value", "any")), Returns: params(param("text", "string")), Do: toString},
		{Name: "tonumber", Doc: "The number that a text stands for, or nil. With a base (2 to 36) the text is a whole number without sign.",
			Params: params(param("value", "any"), opt("base", "integer")), Returns: params(param("number", "number?")), Do: toNumber},
		{Name: "select", Doc: "The arguments from number n on (negative: from the end), or with \"#\" their count.",
			Params: params(param("n", "integer|string"), param("...", "any")), Returns: params(param("...", "any")), Do: selectArgs},
		{Name: "unpack", Doc: "The items i (default 1) to j (default #list) of a list, at most 8000.",
			Params: params(param("list", "table"), opt("i", "integer"), opt("j", "integer")), Returns: params(param("...", "any")), Do: unpack},
		{Name: "print", Doc: "Writes its arguments to the gateway's log, separated by tabs.",
			Params: params(param("...", "any")), Do: printArgs},
	}
}

func assert(a vm.Args) int {
	if lua.LVAsBool(a.Any(1)) {
		return a.Len()
	}
	switch message := a.Get(2).(type) {
	case *lua.LNilType:
		a.Raise("assertion failed!")
	case lua.LString:
		a.Raise("%s", string(message))
	default:
		a.L.Error(message, 0)
	}
	return 0
}

func typeOf(a vm.Args) int {
	a.L.Push(typeNames[a.Any(1).Type()])
	return 1
}

// typeNames are boxed once: type is called often.
var typeNames = func() (names [lua.LTChannel + 1]lua.LValue) {
	for t := lua.LTNil; t <= lua.LTChannel; t++ {
		names[t] = lua.LString(t.String())
	}
	return names
}()

func toString(a vm.Args) int {
	a.Any(1)
	a.L.Push(text(a, 1))
	return 1
}

// text is tostring of argument i.
func text(a vm.Args, i int) lua.LValue {
	switch v := a.Get(i).(type) {
	case lua.LString:
		return v
	case lua.LNumber:
		return lua.LString(vm.TextOf(v))
	case *lua.LTable, *lua.LUserData:
		if handler := a.L.GetMetaField(v, "__tostring"); handler != lua.LNil {
			a.Call(1, handler, v)
			result := a.L.Get(-1)
			a.L.Pop(1)
			return result
		}
		return lua.LString(v.String())
	default:
		return lua.LString(v.String())
	}
}

func printArgs(a vm.Args) int {
	var b strings.Builder
	for i, n := 1, a.Len(); i <= n; i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		s, ok := text(a, i).(lua.LString)
		if !ok {
			a.Raise("'tostring' must return a string to 'print'")
		}
		a.CheckString(b.Len() + len(s))
		b.WriteString(string(s))
	}
	a.VM.Print(b.String())
	return 0
}

func toNumber(a vm.Args) int {
	if !a.Has(2) {
		if f, ok := vm.ToNumber(a.Any(1)); ok {
			a.L.Push(lua.LNumber(f))
		} else {
			a.L.Push(lua.LNil)
		}
		return 1
	}
	base := a.Int(2)
	if base < 2 || base > 36 {
		a.Bad(2, "base out of range")
	}
	if base == 10 {
		if f, ok := vm.ToNumber(a.Any(1)); ok {
			a.L.Push(lua.LNumber(f))
			return 1
		}
	} else if f, ok := parseBase(a.String(1), base); ok {
		a.L.Push(lua.LNumber(f))
		return 1
	}
	a.L.Push(lua.LNil)
	return 1
}

func parseBase(s string, base int) (float64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if base == 16 && len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		s = s[2:]
	}
	f := 0.0
	for i := 0; i < len(s); i++ {
		digit := 99
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digit = int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			digit = int(c|0x20-'a') + 10
		}
		if digit >= base {
			return 0, false
		}
		f = f*float64(base) + float64(digit)
	}
	return f, s != ""
}

func selectArgs(a vm.Args) int {
	n := a.Len()
	if a.Get(1) == lua.LString("#") {
		a.L.Push(lua.LNumber(n - 1))
		return 1
	}
	i := a.Int(1)
	if i < 0 {
		i += n
	}
	if i < 1 {
		a.Bad(1, "index out of range")
	}
	return max(n-i, 0)
}

func unpack(a vm.Args) int {
	t := a.Readable(1)
	from := a.OptInt(2, 1)
	to := a.OptInt(3, 0)
	if !a.Has(3) {
		to = t.Len()
	}
	if from > to {
		return 0
	}
	n := to - from + 1
	if n >= maxResults {
		a.Raise("too many results to unpack")
	}
	a.VM.Charge(n / 4)
	for i := from; i <= to; i++ {
		a.L.Push(item(t, i))
	}
	return n
}

// item is t[i] without metamethods, also where the machine keeps i in the hash part.
func item(t *lua.LTable, i int) lua.LValue {
	if i >= 1 && i <= vm.MaxArray {
		return t.RawGetInt(i)
	}
	return t.RawGet(lua.LNumber(i))
}

func quoteType(v lua.LValue) string { return fmt.Sprintf("a %s value", v.Type()) }
