package store

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// entryCost is what an entry takes beside its key and its value: itself, and its place in the map, of which between a half and seven
// eighths are in use.
const entryCost = int64(unsafe.Sizeof(entry{})) + 48

// cloned copies a text and tells how much memory the copy takes.
func cloned(s string) (text string, size int64) {
	if s == "" {
		return "", 0
	}
	b := append([]byte(nil), s...) // its capacity is what was allocated
	return unsafe.String(&b[0], len(b)), int64(cap(b))
}

// Own gives a value that keeps nothing else alive, and how much memory it takes. Tables are not looked at.
func Own(v lua.LValue) (lua.LValue, int64) {
	switch v := v.(type) {
	case lua.LString:
		text, size := cloned(string(v))
		return lua.LString(text), size + int64(unsafe.Sizeof(text))
	case lua.LNumber:
		return v, int64(unsafe.Sizeof(v))
	}
	return v, 0
}
