package luaapi

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// surface is what scripts see of req, res or entry: its fields and methods. Methods, and the headers, stand in a table behind the
// handle, so that looking them up is no call; the other fields are computed when somebody asks.
type surface struct {
	name    string
	fields  []field
	methods []vm.Func
	byName  map[string]*field
	index   *lua.LFunction
	assign  *lua.LFunction
}

// field is one field of a handle. get makes its value; set is nil when it is read-only.
type field struct {
	name, kind, doc string
	get             func(f *frame) lua.LValue
	set             func(f *frame, L *lua.LState, v lua.LValue)
	instead         string // what to write where it is read-only
}

// surfaces are those of a machine: the metatable of a handle and the table behind it, once needed.
type surfaces [3]struct{ meta, members *lua.LTable }

const (
	requestSurface = iota
	responseSurface
	entrySurface
)

// newSurfaces makes the three kinds of main handles. All VMs of a pipeline share them.
func newSurfaces() [3]*surface {
	return [3]*surface{
		requestSurface:  newSurface("req", requestFields, append(slices.Clone(requestMethods), queryMethods...)),
		responseSurface: newSurface("res", responseFields, responseMethods),
		entrySurface:    newSurface("entry", entryFields, entryMethods),
	}
}

func newSurface(name string, fields []field, methods []vm.Func) *surface {
	s := &surface{name: name, fields: fields, methods: methods, byName: map[string]*field{}}
	for i := range fields {
		s.byName[fields[i].name] = &fields[i]
	}
	s.index = goFunction(s.get)
	s.assign = goFunction(s.set)
	return s
}

// surface is the metatable for handles of that kind in this machine.
func (m *machine) surface(kind int) *lua.LTable {
	t := &m.surfaces[kind]
	if t.meta == nil {
		s := m.stage.kinds[kind]
		t.members = newTable()
		for i := range s.methods {
			_, name, _ := strings.Cut(s.methods[i].Name, ":")
			t.members.RawSetString(name, s.methods[i].Function())
		}
		t.members.Metatable = metatable("__index", s.index)
		t.meta = metatable("__index", t.members, "__newindex", s.assign)
	}
	return t.meta
}

// show puts the headers of a new frame behind the handle. Machines whose scripts never say the word are spared.
func (m *machine) show(kind int, headers *lua.LUserData) {
	if m.stage.saysHeaders {
		m.surfaces[kind].members.RawSetString("headers", headers)
	}
}

// get computes a field. Lua passes the table behind the handle, not the handle; but only a handle of the frame in work comes
// here, because end takes the metatable away from all others.
func (s *surface) get(L *lua.LState) int {
	key, _ := L.Get(2).(lua.LString)
	fd := s.byName[string(key)]
	if fd == nil {
		raise(L, s.unknown(L.Get(2)))
	}
	L.Push(fd.get(current(L)))
	return 1
}

func (s *surface) set(L *lua.LState) int {
	key, _ := L.Get(2).(lua.LString)
	fd := s.byName[string(key)]
	switch {
	case fd == nil:
		raise(L, s.unknown(L.Get(2)))
	case fd.set == nil:
		raise(L, s.name+"."+fd.name+" is read-only"+fd.instead)
	default:
		fd.set(current(L), L, L.Get(3))
	}
	return 0
}

func (s *surface) unknown(key lua.LValue) string {
	var names []string
	for i := range s.fields {
		names = append(names, s.fields[i].name)
	}
	slices.Sort(names)
	for i := range s.methods {
		names = append(names, strings.TrimPrefix(s.methods[i].Name, s.name)+"()")
	}
	return s.name + " has no " + describe(key) + ": it has " + strings.Join(names, ", ")
}

// describe names a value in a message.
func describe(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		if len(v) > 60 {
			v = v[:60] + "..."
		}
		return `"` + string(v) + `"`
	case lua.LNumber:
		return vm.NumberText(float64(v))
	case lua.LBool, *lua.LNilType:
		return v.String()
	case *lua.LFunction, *lua.LTable:
		return "a " + v.Type().String()
	}
	return "a handle"
}

// goFunction is a Lua function without state, which all VMs share.
func goFunction(do lua.LGFunction) *lua.LFunction { return &lua.LFunction{IsG: true, GFunction: do} }

// newTable makes a table for a few members; stock sizes take 2 KiB.
func newTable() *lua.LTable { return (*lua.LState)(nil).CreateTable(0, 8) }

// metatable makes one from pairs of names and values; scripts cannot reach it.
func metatable(pairs ...any) *lua.LTable {
	t := newTable()
	t.RawSetString("__metatable", lua.LFalse)
	for i := 0; i < len(pairs); i += 2 {
		t.RawSetString(pairs[i].(string), pairs[i+1].(lua.LValue))
	}
	return t
}

// staleMeta is the metatable of handles whose exchange is over.
var staleMeta = func() *lua.LTable {
	stale := goFunction(func(L *lua.LState) int {
		raise(L, staleMessage)
		return 0
	})
	return metatable("__index", stale, "__newindex", stale)
}()
