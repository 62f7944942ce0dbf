package vm

import (
	"maps"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// table is lua.LTable with its fields readable, for what gopher-lua offers no cheap way to: a table made whole, its keys in order. matchesTable
// tells whether this gopher-lua's is the same.
type table struct {
	Metatable lua.LValue

	array   []lua.LValue
	dict    map[lua.LValue]lua.LValue
	strdict map[string]lua.LValue
	keys    []lua.LValue       // of dict and strdict in the order in which they came; only ever appended to
	k2i     map[lua.LValue]int // their places in keys
}

func matchesTable(t reflect.Type) bool {
	mine := reflect.TypeFor[table]()
	same := t.Size() == mine.Size() && t.NumField() == mine.NumField()
	for i := 0; same && i < mine.NumField(); i++ {
		a, b := mine.Field(i), t.Field(i)
		same = a.Name == b.Name && a.Type == b.Type && a.Offset == b.Offset
	}
	return same
}

// Shape makes tables that have the same names in the same order, such as the objects of a list in JSON: what gopher-lua keeps beside the values
// is made once (BenchmarkJSONDecode). It is immutable and safe for concurrent use.
type Shape struct {
	names []string
	keys  []lua.LValue
	k2i   map[lua.LValue]int
}

// NewShape makes the shape of some names, which it keeps; nil when two of them are the same.
func NewShape(names []string) *Shape {
	s := &Shape{names: names, keys: make([]lua.LValue, len(names)), k2i: make(map[lua.LValue]int, len(names))}
	for i, name := range names {
		s.keys[i] = lua.LString(name)
		s.k2i[s.keys[i]] = i
	}
	if len(s.k2i) != len(names) {
		return nil
	}
	return s
}

// Names are the names of the shape's tables. They must not be changed.
func (s *Shape) Names() []string { return s.names }

// Table makes a table in which each name has the value at its place; none of them may be nil.
func (s *Shape) Table(values []lua.LValue) *lua.LTable {
	t := &table{Metatable: lua.LNil, strdict: make(map[string]lua.LValue, len(values)), keys: s.keys[:len(s.keys):len(s.keys)], k2i: maps.Clone(s.k2i)}
	for i, name := range s.names {
		t.strdict[name] = values[i]
	}
	return (*lua.LTable)(unsafe.Pointer(t))
}

// Keys are the keys of a table beside its items 1 to n, in the order in which they came. Some may have no value any more. They are for reading, until the
// table is next changed.
func Keys(t *lua.LTable) []lua.LValue { return (*table)(unsafe.Pointer(t)).keys }
