package stdlib

import (
	"strings"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// search finds the first match from init on; start is -1 if there is none.
func (m *matcher) search(init int) (start, end int) {
	p := 0
	anchored := strings.HasPrefix(m.pattern, "^")
	if anchored {
		p = 1
	}
	for s := init; s <= len(m.text); s++ {
		if e := m.matchAt(s, p); e >= 0 {
			return s, e
		}
		if anchored {
			break
		}
	}
	return -1, -1
}

// value is capture i, or the whole match where the pattern has none.
func (m *matcher) value(i, start, end int) lua.LValue {
	if i >= m.level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return lua.LString(m.text[start:end])
	}
	c := m.captures[i]
	switch c.length {
	case unclosed:
		m.fail("unfinished capture")
	case position:
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.text[c.start : c.start+c.length])
}

// push pushes all captures, or the whole match if whole is set and there are none, and returns their number.
func (m *matcher) push(L *lua.LState, start, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		L.Push(m.value(i, start, end))
	}
	return n
}

// from is the byte at which a search begins.
func from(a vm.Args, n int) int {
	init := a.OptInt(3, 1)
	if init < 0 {
		init += n + 1
	}
	return min(max(init-1, 0), n)
}

func find(a vm.Args) int {
	text, pattern := a.String(1), a.String(2)
	init := from(a, len(text))
	if a.Bool(4) || !strings.ContainsAny(pattern, "^$*+?.([%-") {
		a.VM.Charge((len(text) - init) >> 6)
		i := strings.Index(text[init:], pattern)
		if i < 0 {
			a.L.Push(lua.LNil)
			return 1
		}
		return a.Return(lua.LNumber(init+i+1), lua.LNumber(init+i+len(pattern)))
	}
	m := matcher{a: a, text: text, pattern: pattern}
	start, end := m.search(init)
	m.charge()
	if start < 0 {
		a.L.Push(lua.LNil)
		return 1
	}
	a.L.Push(lua.LNumber(start + 1))
	a.L.Push(lua.LNumber(end))
	return 2 + m.push(a.L, start, end, false)
}

func match(a vm.Args) int {
	text, pattern := a.String(1), a.String(2)
	m := matcher{a: a, text: text, pattern: pattern}
	start, end := m.search(from(a, len(text)))
	m.charge()
	if start < 0 {
		a.L.Push(lua.LNil)
		return 1
	}
	return m.push(a.L, start, end, true)
}

func gmatch(a vm.Args) int {
	text, pattern := a.String(1), a.String(2)
	at := 0
	next := vm.Func{Name: "string.gmatch", Do: func(a vm.Args) int {
		m := matcher{a: a, text: text, pattern: pattern}
		for s := at; s <= len(text); s++ {
			e := m.matchAt(s, 0)
			if e < 0 {
				continue
			}
			if at = e; e == s {
				at++
			}
			m.charge()
			return m.push(a.L, s, e, true)
		}
		m.charge()
		at = len(text) + 1
		a.L.Push(lua.LNil)
		return 1
	}}
	a.L.Push(next.Function())
	return 1
}

func gsub(a vm.Args) int {
	text, pattern := a.String(1), a.String(2)
	r := replacer{a: a, m: matcher{a: a, text: text, pattern: pattern}, limit: a.VM.Base().Limits().String}
	switch v := a.Get(3).(type) {
	case lua.LString:
		r.text = string(v)
	case lua.LNumber:
		r.text = vm.TextOf(v)
	case *lua.LTable, *lua.LFunction:
		r.by = v
	default:
		a.Bad(3, "string/function/table expected")
	}
	most := a.OptInt(4, len(text)+1)
	p := 0
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		p = 1
	}
	n, s := 0, 0
	for n < most {
		e := r.m.matchAt(s, p)
		if e >= 0 {
			n++
			r.replace(s, e)
		}
		if e > s {
			s = e
		} else if s < len(text) {
			r.add(text[s : s+1])
			s++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	r.m.charge()
	if n == 0 {
		return a.Return(lua.LString(text), lua.LNumber(0))
	}
	r.add(text[min(s, len(text)):])
	a.CheckString(len(r.out))
	return a.Return(taken(r.out), lua.LNumber(n))
}

// replacer builds the result of gsub.
type replacer struct {
	a     vm.Args
	m     matcher
	text  string     // the replacement, where by is nil
	by    lua.LValue // table or function
	limit int
	out   []byte
}

func (r *replacer) add(s string) {
	if len(r.out)+len(s) > r.limit {
		r.a.CheckString(len(r.out) + len(s)) // raises
	}
	r.out = append(r.out, s...)
}

func (r *replacer) replace(start, end int) {
	var value lua.LValue
	switch by := r.by.(type) {
	case nil:
		r.expand(start, end)
		return
	case *lua.LTable:
		value = r.a.L.GetTable(by, r.m.value(0, start, end))
	default:
		L := r.a.L
		L.Push(by)
		L.Call(r.m.push(L, start, end, true), 1)
		value = L.Get(-1)
		L.Pop(1)
	}
	switch v := value.(type) {
	case lua.LString:
		r.add(string(v))
	case lua.LNumber:
		r.add(vm.TextOf(v))
	default:
		if lua.LVAsBool(value) {
			r.a.Raise("invalid replacement value (%s)", quoteType(value))
		}
		r.add(r.m.text[start:end])
	}
}

// expand adds the replacement text with its %0 to %9.
func (r *replacer) expand(start, end int) {
	for t := r.text; t != ""; {
		i := strings.IndexByte(t, '%')
		if i < 0 || i+1 == len(t) {
			r.add(strings.TrimSuffix(t, "%"))
			return
		}
		r.add(t[:i])
		c := t[i+1]
		switch {
		case c == '0':
			r.add(r.m.text[start:end])
		case isDigit(c):
			switch v := r.m.value(int(c-'1'), start, end).(type) {
			case lua.LNumber:
				r.add(vm.TextOf(v))
			default:
				r.add(v.String())
			}
		default:
			r.add(t[i+1 : i+2])
		}
		t = t[i+2:]
	}
}
