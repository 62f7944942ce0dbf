package vm

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// concat is what `..` is compiled to. All operands of a chain come at once; strings and numbers are joined in one piece.
func concat(L *lua.LState) int {
	n := L.GetTop()
	v := From(L)
	total := 0
	for i := 1; i <= n; i++ {
		switch o := L.Get(i).(type) {
		case lua.LString:
			total += len(o)
		case lua.LNumber:
			total += 24 // enough for any text of a number
		default:
			return concatMeta(L, v, n)
		}
	}
	L.Push(join(L, v, 1, n, total))
	return 1
}

// join joins operands from to n, all strings or numbers, of at most size bytes.
func join(L *lua.LState, v *VM, from, n, size int) lua.LString {
	v.Grow(size)
	b := make([]byte, 0, size)
	for i := from; i <= n; i++ {
		switch o := L.Get(i).(type) {
		case lua.LString:
			b = append(b, o...)
		case lua.LNumber:
			b = AppendText(b, o)
		}
	}
	if len(b) == 0 {
		return ""
	}
	return lua.LString(unsafe.String(&b[0], len(b)))
}

// concatMeta goes pairwise from the right, as Lua does where operands have __concat.
func concatMeta(L *lua.LState, v *VM, n int) int {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		if joinable(left) && joinable(right) {
			L.Push(left)
			L.Push(right)
			top := L.GetTop()
			right = join(L, v, top-1, top, sizeOf(left)+sizeOf(right))
			L.Pop(2)
			continue
		}
		handler := L.GetMetaField(left, "__concat")
		if handler == lua.LNil {
			handler = L.GetMetaField(right, "__concat")
		}
		if handler == lua.LNil {
			bad, at := left, i
			if joinable(left) {
				bad, at = right, i+1
			}
			L.RaiseError("attempt to concatenate a %s value (operand %d of %d)", bad.Type().String(), at, n)
		}
		L.Push(handler)
		L.Push(left)
		L.Push(right)
		L.Call(2, 1)
		right = L.Get(-1)
		L.Pop(1)
	}
	L.Push(right)
	return 1
}

func joinable(v lua.LValue) bool { return v.Type() == lua.LTString || v.Type() == lua.LTNumber }

func sizeOf(v lua.LValue) int {
	if s, ok := v.(lua.LString); ok {
		return len(s)
	}
	return 24
}
