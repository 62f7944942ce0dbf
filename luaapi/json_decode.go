package luaapi

import (
	"strconv"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

const (
	// maxJSONDepth is how deep arrays and objects may nest, both ways.
	maxJSONDepth = 100
	// maxItems is the longest array that a script's table can hold as one.
	maxItems = 1<<16 - 1
)

// jsonReader reads one JSON text (RFC 8259) into Lua values. Of two members with the same name the last one counts, as with
// most upstreams. It reads strictly: what it accepts every other reader accepts with the same meaning.
type jsonReader struct {
	in  []byte
	pos int
	buf []byte // the last string that had escapes
	vm  *vm.VM // counts a step for each value
	err string // what is wrong at pos

	names    *memberNames
	expected *expectedNames
	shapes   *jsonShapes
	room     []byte       // for the next short strings
	keys     []string     // of the objects that are open
	values   []lua.LValue // of the objects and arrays that are open
}

// decodeJSON reads a whole text. The error names the byte where it is wrong.
func decodeJSON(L *lua.LState, in []byte) (lua.LValue, error) {
	r := newJSONReader(vm.From(L), in)
	v := r.value(0)
	return r.finish(v)
}

func newJSONReader(of *vm.VM, in []byte) jsonReader {
	cache := cachesOf(of)
	if cache.expected == nil {
		cache.expected = new(expectedNames)
	}
	return jsonReader{in: in, vm: of, names: &cache.names, expected: cache.expected, shapes: &worldOf(of).shapes}
}

// finish checks that nothing but white space is left.
func (r *jsonReader) finish(v lua.LValue) (lua.LValue, error) {
	if r.err == "" {
		if r.space(); r.pos < len(r.in) {
			r.err = "more text after the value"
		}
	}
	if r.err != "" {
		return lua.LNil, &jsonError{r.pos, r.err}
	}
	return v, nil
}

// jsonError tells where a text is no JSON.
type jsonError struct {
	at   int
	text string
}

func (e *jsonError) Error() string {
	return "not JSON: " + e.text + " at byte " + strconv.Itoa(e.at+1)
}

func (r *jsonReader) fail(text string) lua.LValue {
	if r.err == "" {
		r.err = text
	}
	return lua.LNil
}

func (r *jsonReader) space() {
	for r.pos < len(r.in) {
		switch r.in[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// peek is the next byte after white space, 0 at the end.
func (r *jsonReader) peek() byte {
	if r.pos < len(r.in) && r.in[r.pos] > ' ' {
		return r.in[r.pos]
	}
	return r.next()
}

func (r *jsonReader) next() byte {
	if r.space(); r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

func (r *jsonReader) value(depth int) lua.LValue {
	switch c := r.peek(); {
	case c == '{':
		return r.object(depth + 1)
	case c == '[':
		return r.array(depth + 1)
	case c == '"':
		if s, ok := r.text(); ok {
			return r.kept(s)
		}
		return lua.LNil
	case c == '-' || '0' <= c && c <= '9':
		if literal, ok := r.number(); ok {
			return luaNumber(literal)
		}
		return lua.LNil
	case c == 't' && r.word("true"):
		return lua.LTrue
	case c == 'f' && r.word("false"):
		return lua.LFalse
	case c == 'n' && r.word("null"):
		return jsonNull
	case r.pos >= len(r.in):
		return r.fail("the text ends too early")
	}
	return r.fail("unexpected " + strconv.QuoteRune(rune(r.in[r.pos])))
}

func (r *jsonReader) word(w string) bool {
	if len(r.in)-r.pos < len(w) || string(r.in[r.pos:r.pos+len(w)]) != w {
		return false
	}
	r.pos += len(w)
	return true
}

func (r *jsonReader) object(depth int) lua.LValue {
	keys, values := len(r.keys), len(r.values)
	if !r.begin(depth, '}') {
		return newTable()
	}
	for more := true; more; more = r.more('}') {
		r.vm.Charge(1)
		name, ok := r.name()
		if !ok {
			return lua.LNil
		}
		key := r.key(name)
		v := r.value(depth)
		if r.err != "" {
			return lua.LNil
		}
		r.keys, r.values = append(r.keys, key), append(r.values, v)
	}
	t := r.shapes.table(r.keys[keys:], r.values[values:])
	r.keys, r.values = r.keys[:keys], r.values[:values]
	return t
}

// kept is a string of its own. Short ones lie together, so that one which is kept for long holds no more than a KiB with it.
func (r *jsonReader) kept(s []byte) lua.LString {
	const short, together = 64, 1 << 10
	if len(s) > short || len(s) == 0 {
		return lua.LString(s)
	}
	if cap(r.room)-len(r.room) < len(s) {
		r.room = make([]byte, 0, min(together, len(r.in)-r.pos+len(s)))
	}
	at := len(r.room)
	r.room = append(r.room, s...)
	return lua.LString(unsafe.String(&r.room[at], len(s)))
}

// memberNames are names of members that a VM has seen lately: most come again, in the next object and in the next request.
type memberNames [64]string

// key is a member's name as a string, the same one for a name that comes again.
func (r *jsonReader) key(name []byte) string {
	if len(name) == 0 || len(name) > 64 {
		return string(name)
	}
	known := &r.names[(len(name)+int(name[0])*7+int(name[len(name)-1])*31+int(name[len(name)/2])*3)%len(r.names)]
	if *known != string(name) {
		*known = string(name)
	}
	return *known
}

// members walks an object; member must consume the value, and no longer needs the name after that.
func (r *jsonReader) members(depth int, member func(name []byte)) {
	if !r.begin(depth, '}') {
		return
	}
	for r.err == "" {
		r.vm.Charge(1)
		name, ok := r.name()
		if !ok {
			return
		}
		if member(name); r.err != "" || !r.more('}') {
			return
		}
	}
}

// name consumes a member's name and the colon behind it. The name holds until the next text is read.
func (r *jsonReader) name() ([]byte, bool) {
	if r.peek() != '"' {
		r.fail("a member's name was expected")
		return nil, false
	}
	name, ok := r.text()
	if !ok {
		return nil, false
	}
	if r.peek() != ':' {
		r.fail("':' was expected")
		return nil, false
	}
	r.pos++
	return name, true
}

// begin consumes the sign that opens an object or array, and tells whether there is something in it.
func (r *jsonReader) begin(depth int, closing byte) bool {
	if depth > maxJSONDepth {
		r.fail("nested deeper than 100")
		return false
	}
	r.pos++
	if r.peek() == closing {
		r.pos++
		return false
	}
	return true
}

// more consumes a comma, or the closing sign and tells that it was the last.
func (r *jsonReader) more(closing byte) bool {
	switch r.peek() {
	case ',':
		r.pos++
		return true
	case closing:
		r.pos++
		return false
	}
	r.fail("',' or '" + string(rune(closing)) + "' was expected")
	return false
}

func (r *jsonReader) array(depth int) lua.LValue {
	values := len(r.values)
	for more := r.begin(depth, ']'); more; more = r.more(']') {
		r.vm.Charge(1)
		if len(r.values)-values >= maxItems {
			return r.fail("an array of more than 65535 items")
		}
		v := r.value(depth)
		if r.err != "" {
			return lua.LNil
		}
		r.values = append(r.values, v)
	}
	t := (*lua.LState)(nil).CreateTable(len(r.values)-values, 0)
	t.Metatable = jsonArray
	for _, v := range r.values[values:] {
		t.Append(v)
	}
	r.values = r.values[:values]
	return t
}

// items walks an array; item must consume the value.
func (r *jsonReader) items(depth int, item func(i int)) {
	if !r.begin(depth, ']') {
		return
	}
	for i := 0; r.err == ""; i++ {
		r.vm.Charge(1)
		if item(i); r.err != "" || !r.more(']') {
			return
		}
	}
}
