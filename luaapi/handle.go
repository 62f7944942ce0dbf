package luaapi

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// handleMeta is the metatable of a handle that has methods and nothing else: a name that it does not have raises.
func handleMeta(what string, methods []vm.Func, pairs ...any) *lua.LTable {
	members := newTable()
	var names []string
	for i := range methods {
		_, name, _ := strings.Cut(methods[i].Name, ":")
		members.RawSetString(name, methods[i].Function())
		names = append(names, ":"+name+"()")
	}
	members.Metatable = metatable("__index", goFunction(func(L *lua.LState) int {
		raise(L, what+" has no "+describe(L.Get(2))+": it has "+strings.Join(names, ", "))
		return 0
	}))
	refuse := goFunction(func(L *lua.LState) int {
		raise(L, what+" has no fields to set")
		return 0
	})
	return metatable(append(pairs, "__index", members, "__newindex", refuse)...)
}
