package stdlib

import (
	"strings"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func stringFuncs() []vm.Func {
	s := param("s", "string")
	text := params(param("text", "string"))
	pattern := param("pattern", "string")
	captures := params(param("...", "string|integer"))
	return []vm.Func{
		{Name: "string.byte", Doc: "The codes of bytes i (default 1) to j (default i).", Params: params(s, opt("i", "integer"), opt("j", "integer")),
			Returns: params(param("...", "integer")), Do: byteCodes},
		{Name: "string.char", Doc: "A string of the bytes with these codes.", Params: params(param("...", "integer")), Returns: text, Do: char},
		{Name: "string.find", Doc: "Where pattern first matches from init on: start, end and its captures, or nil. With plain it is text, not a pattern.",
			Params:  params(s, pattern, opt("init", "integer"), opt("plain", "boolean")),
			Returns: params(param("start", "integer?"), param("end", "integer?"), param("...", "string|integer")), Do: find},
		{Name: "string.format", Doc: "Arguments after a format as C's printf: %c %d %e %f %g %i %o %q %s %u %x.",
			Params: params(param("format", "string"), param("...", "any")), Returns: text, Do: format},
		{Name: "string.gmatch", Doc: "For use in for: the captures (or the whole) of each match of pattern.", Params: params(s, pattern),
			Returns: params(param("next", "function")), Do: gmatch},
		{Name: "string.gsub", Doc: "s with its matches (at most n) replaced by a string (with %0 to %9), a table's or a function's values; and their number.",
			Params:  params(s, pattern, param("replacement", "string|table|function"), opt("n", "integer")),
			Returns: params(param("text", "string"), param("count", "integer")), Do: gsub},
		{Name: "string.len", Doc: "The number of bytes.", Params: params(s), Returns: params(param("n", "integer")),
			Do: func(a vm.Args) int { return push(a, float64(len(a.String(1)))) }},
		{Name: "string.lower", Doc: "s with A to Z in lower case; other bytes stay.", Params: params(s), Returns: text,
			Do: func(a vm.Args) int { return mapped(a, 'A', 'Z') }},
		{Name: "string.match", Doc: "The captures (or the whole) of the first match of pattern from init on, or nil.",
			Params: params(s, pattern, opt("init", "integer")), Returns: captures, Do: match},
		{Name: "string.rep", Doc: "s n times.", Params: params(s, param("n", "integer")), Returns: text, Do: rep},
		{Name: "string.reverse", Doc: "s with its bytes in reverse order.", Params: params(s), Returns: text, Do: reverse},
		{Name: "string.sub", Doc: "Bytes i to j (default -1); negative positions count from the end.",
			Params: params(s, param("i", "integer"), opt("j", "integer")), Returns: text, Do: sub},
		{Name: "string.upper", Doc: "s with a to z in upper case; other bytes stay.", Params: params(s), Returns: text,
			Do: func(a vm.Args) int { return mapped(a, 'a', 'z') }},
	}
}

// bounds turns Lua positions into the Go range [from, to) of a string of n bytes.
func bounds(i, j, n int) (from, to int) {
	if i < 0 {
		i = max(i+n+1, 1)
	} else if i == 0 {
		i = 1
	}
	if j < 0 {
		j = j + n + 1
	} else if j > n {
		j = n
	}
	if i > j {
		return 0, 0
	}
	return i - 1, j
}

func sub(a vm.Args) int {
	s := a.String(1)
	from, to := bounds(a.Int(2), a.OptInt(3, -1), len(s))
	if from == 0 && to == len(s) {
		a.L.Push(lua.LString(s))
		return 1
	}
	a.L.Push(lua.LString(s[from:to]))
	return 1
}

func byteCodes(a vm.Args) int {
	s := a.String(1)
	i := a.OptInt(2, 1)
	from, to := bounds(i, a.OptInt(3, i), len(s))
	if to-from >= maxResults {
		a.Raise("string slice too long")
	}
	a.VM.Charge((to - from) / 4)
	for _, c := range []byte(s[from:to]) {
		a.L.Push(lua.LNumber(c))
	}
	return to - from
}

func char(a vm.Args) int {
	b := make([]byte, a.Len())
	for i := range b {
		c := a.Int(i + 1)
		if c < 0 || c > 255 {
			a.Bad(i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	a.L.Push(taken(b))
	return 1
}

// mapped changes the case of the letters from first to last.
func mapped(a vm.Args, first, last byte) int {
	s := a.String(1)
	for i := 0; i < len(s); i++ {
		if s[i] >= first && s[i] <= last {
			a.CheckString(len(s))
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= first && b[i] <= last {
					b[i] ^= 0x20
				}
			}
			a.L.Push(taken(b))
			return 1
		}
	}
	a.VM.Charge(len(s) >> 6)
	a.L.Push(lua.LString(s))
	return 1
}

func rep(a vm.Args) int {
	s, n := a.String(1), a.Int(2)
	if n <= 0 || s == "" {
		a.L.Push(lua.LString(""))
		return 1
	}
	if n > a.VM.Base().Limits().String {
		n = a.VM.Base().Limits().String + 1 // the product does not overflow
	}
	a.CheckString(len(s) * n)
	a.L.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

func reverse(a vm.Args) int {
	s := a.String(1)
	a.CheckString(len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	a.L.Push(taken(b))
	return 1
}
