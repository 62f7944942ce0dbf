package luaapi

import (
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// getJSON reads the one value that a path of names and indexes leads to, without making tables for the rest; nil when the path
// leads nowhere. The whole text is checked, and of two members with the same name the last one counts, as when decoding.
func getJSON(L *lua.LState, in []byte, path []string) (lua.LValue, error) {
	of := vm.From(L)
	r := jsonReader{in: in, vm: of, names: &cachesOf(of).names}
	v := r.find(path, 0)
	return r.finish(v)
}

// jsonPath splits "user.role.0"; a dot that belongs to a name is written `\.`.
func jsonPath(path string) []string {
	if !strings.Contains(path, `\`) {
		return strings.Split(path, ".")
	}
	var parts []string
	var part []byte
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			part = append(part, path[i])
		case c == '.':
			parts = append(parts, string(part))
			part = part[:0]
		default:
			part = append(part, c)
		}
	}
	return append(parts, string(part))
}

// find consumes the value at pos and gives the one in it that the path leads to, in one pass.
func (r *jsonReader) find(path []string, depth int) lua.LValue {
	if len(path) == 0 {
		return r.value(depth)
	}
	var found lua.LValue = lua.LNil
	switch r.peek() {
	case '{':
		r.members(depth+1, func(name []byte) {
			if string(name) == path[0] {
				found = r.find(path[1:], depth+1)
			} else {
				r.skip(depth + 1)
			}
		})
	case '[':
		want, err := strconv.Atoi(path[0])
		r.items(depth+1, func(i int) {
			if err == nil && i == want {
				found = r.find(path[1:], depth+1)
			} else {
				r.skip(depth + 1)
			}
		})
	default:
		r.skip(depth)
	}
	return found
}

// skip consumes a value and checks it. What it costs was charged beforehand, by length.
func (r *jsonReader) skip(depth int) {
	switch c := r.peek(); {
	case c == '"':
		r.skipText()
	case c == '{':
		r.skipMembers(depth + 1)
	case c == '[':
		r.skipItems(depth + 1)
	case c == '-' || '0' <= c && c <= '9':
		r.number()
	default:
		r.value(depth)
	}
}

func (r *jsonReader) skipMembers(depth int) {
	if !r.begin(depth, '}') {
		return
	}
	for {
		if r.peek() != '"' {
			r.fail("a member's name was expected")
			return
		}
		if !r.skipText() {
			return
		}
		if r.peek() != ':' {
			r.fail("':' was expected")
			return
		}
		r.pos++
		if r.skip(depth); r.err != "" || !r.more('}') {
			return
		}
	}
}

func (r *jsonReader) skipItems(depth int) {
	if !r.begin(depth, ']') {
		return
	}
	for {
		if r.skip(depth); r.err != "" || !r.more(']') {
			return
		}
	}
}

// skipText consumes a string. Most are short and plain.
func (r *jsonReader) skipText() bool {
	in := r.in
	for i := r.pos + 1; i < len(in) && i < r.pos+12; i++ {
		c := in[i]
		if c == '"' {
			r.pos = i + 1
			return true
		}
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	_, ok := r.text()
	return ok
}
