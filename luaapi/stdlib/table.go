package stdlib

import (
	"sort"
	"unsafe"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func tableFuncs() []vm.Func {
	list := param("list", "table")
	return []vm.Func{
		{Name: "table.insert", Doc: "Inserts value at position pos (default: the end), moving up what follows. A list holds at most 65535 items.",
			Params: params(list, opt("pos", "integer"), param("value", "any")), Do: insert},
		{Name: "table.remove", Doc: "Removes and returns the item at pos (default: the last), moving down what follows.",
			Params: params(list, opt("pos", "integer")), Returns: params(param("value", "any")), Do: remove},
		{Name: "table.concat", Doc: "Joins the items i to j, strings or numbers, with separator between them.",
			Params:  params(list, opt("separator", "string"), opt("i", "integer"), opt("j", "integer")),
			Returns: params(param("text", "string")), Do: concat},
		{Name: "table.sort", Doc: "Sorts a list in place, by < or by before(a, b), which tells whether a comes first. Not stable.",
			Params: params(list, opt("before", "fun(a: any, b: any): boolean")), Do: sortList},
		{Name: "table.maxn", Doc: "The largest positive number among the keys, 0 if there is none.",
			Params: params(list), Returns: params(param("n", "number")), Do: maxN},
	}
}

func insert(a vm.Args) int {
	t := a.Writable(1)
	n := t.Len()
	if n >= vm.MaxArray {
		a.Raise("list is full: it holds %d items", vm.MaxArray)
	}
	switch a.Len() {
	case 2:
		t.RawSetInt(n+1, a.Get(2))
	case 3:
		pos := a.Int(2)
		if pos < 1 || pos > vm.MaxArray {
			a.Bad(2, "position out of bounds")
		}
		if pos > n {
			t.RawSetInt(pos, a.Get(3))
			break
		}
		a.VM.Charge((n - pos) / 8)
		t.Insert(pos, a.Get(3))
	default:
		a.Raise("wrong number of arguments to 'table.insert'")
	}
	return 0
}

func remove(a vm.Args) int {
	t := a.Writable(1)
	n := t.Len()
	pos := a.OptInt(2, n)
	if pos < 1 || pos > n {
		return 0
	}
	a.VM.Charge((n - pos) / 8)
	a.L.Push(t.Remove(pos))
	return 1
}

func concat(a vm.Args) int {
	t := a.Readable(1)
	separator := a.OptString(2, "")
	from := a.OptInt(3, 1)
	to := a.OptInt(4, 0)
	if !a.Has(4) {
		to = t.Len()
	}
	if from > to {
		a.L.Push(lua.LString(""))
		return 1
	}
	size := 0
	limit := a.VM.Base().Limits().String
	for i := from; i <= to; i++ {
		a.VM.Charge(1)
		switch v := item(t, i).(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += len(vm.AppendText(make([]byte, 0, 32), v))
		default:
			a.Raise("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		if i < to {
			size += len(separator)
		}
		if size > limit {
			break
		}
	}
	a.CheckString(size)
	b := make([]byte, 0, size)
	for i := from; i <= to; i++ {
		switch v := item(t, i).(type) {
		case lua.LString:
			b = append(b, v...)
		case lua.LNumber:
			b = vm.AppendText(b, v)
		}
		if i < to {
			b = append(b, separator...)
		}
	}
	a.L.Push(taken(b))
	return 1
}

// taken makes a Lua string of b without copying; b must not be used again.
func taken(b []byte) lua.LString {
	return lua.LString(unsafe.String(unsafe.SliceData(b), len(b)))
}

func sortList(a vm.Args) int {
	t := a.Writable(1)
	s := &sorter{a: a, items: make([]lua.LValue, t.Len())}
	if a.Has(2) {
		s.before = a.Function(2)
	}
	a.VM.Charge(len(s.items) / 4)
	for i := range s.items {
		s.items[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.items {
		t.RawSetInt(i+1, v)
	}
	return 0
}

// sorter sorts a copy: a comparison may raise, or change the table.
type sorter struct {
	a      vm.Args
	items  []lua.LValue
	before *lua.LFunction
}

func (s *sorter) Len() int { return len(s.items) }

func (s *sorter) Swap(i, j int) { s.items[i], s.items[j] = s.items[j], s.items[i] }

func (s *sorter) Less(i, j int) bool {
	s.a.VM.Charge(2)
	if s.before == nil {
		return s.a.L.LessThan(s.items[i], s.items[j])
	}
	s.a.Call(1, s.before, s.items[i], s.items[j])
	less := lua.LVAsBool(s.a.L.Get(-1))
	s.a.L.Pop(1)
	return less
}

func maxN(a vm.Args) int {
	t := a.Readable(1)
	largest := lua.LNumber(0)
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		a.VM.Charge(2)
		if n, ok := k.(lua.LNumber); ok && n > largest {
			largest = n
		}
	}
	a.L.Push(largest)
	return 1
}
