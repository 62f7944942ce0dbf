package luaapi

import (
	"slices"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// jsonShapes are shapes of objects that came more than once: most objects have the members of one that came before. All VMs of a pipeline
// share them; they hold names alone.
type jsonShapes [64]struct {
	seen  atomic.Uint32 // the mark of the names that came last
	shape atomic.Pointer[vm.Shape]
}

// maxShape is how many members an object has at most whose shape is kept, and maxShapeName how long their names are.
const maxShape, maxShapeName = 16, 32

// table makes an object. Of two members with one name the last counts.
func (s *jsonShapes) table(names []string, values []lua.LValue) *lua.LTable {
	mark, ok := shapeMark(names)
	if !ok {
		return objectOf(names, values)
	}
	slot := &s[mark%uint32(len(s))]
	if shape := slot.shape.Load(); shape != nil && slices.Equal(shape.Names(), names) {
		return shape.Table(values)
	}
	if slot.seen.Swap(mark) != mark {
		return objectOf(names, values)
	}
	shape := vm.NewShape(slices.Clone(names))
	if shape == nil {
		return objectOf(names, values)
	}
	slot.shape.Store(shape)
	return shape.Table(values)
}

// shapeMark tells names from others, never 0; false when their shape is not kept.
func shapeMark(names []string) (uint32, bool) {
	mark := uint32(len(names))
	for _, name := range names {
		if len(name) == 0 || len(name) > maxShapeName {
			return 0, false
		}
		mark = mark*31 + uint32(len(name))<<16 + uint32(name[0])<<8 + uint32(name[len(name)-1])
	}
	return mark | 1<<31, len(names) <= maxShape
}

func objectOf(names []string, values []lua.LValue) *lua.LTable {
	t := (*lua.LState)(nil).CreateTable(0, len(names))
	for i, name := range names {
		t.RawSetString(name, values[i])
	}
	return t
}
