package luaapi

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// getJSON reads the one value that a path of names and indexes leads to, without making tables for the rest; nil when the path
// leads nowhere. The whole text is checked, and of two members with the same name the last one counts, as when decoding.
func getJSON(L *lua.LState, in []byte, path []string) (lua.LValue, error) {
	r := newJSONReader(vm.From(L), in)
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

// check consumes a value that was found to be wrong, and says why.
func (r *jsonReader) check(depth int) {
	switch r.peek() {
	case '{':
		r.members(depth+1, func([]byte) { r.check(depth + 1) })
	case '[':
		r.items(depth+1, func(int) { r.check(depth + 1) })
	case '"':
		r.text()
	default:
		r.value(depth)
	}
}
