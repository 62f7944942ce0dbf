package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.url: parts of URLs and their encoding.

var urlFuncs = append([]vm.Func{
	{Name: "gw.url.encode",
		Doc:     "Percent-encodes a text so that it may stand anywhere in a URL; a space is `%20`.",
		Params:  list(p("text", "string", "")),
		Returns: list(p("encoded", "string", "")),
		Do: func(a vm.Args) int {
			s := argText(a, 1)
			a.CheckString(3 * len(s))
			a.L.Push(str(appendEncoded(make([]byte, 0, len(s)+16), s)))
			return 1
		}},
	{Name: "gw.url.decode",
		Doc:     "Decodes percent-encoding and `+`; what cannot be decoded is given as it is.",
		Params:  list(p("text", "string", "")),
		Returns: list(p("decoded", "string", "")),
		Do: func(a vm.Args) int {
			s := argText(a, 1)
			a.CheckString(len(s))
			a.L.Push(lua.LString(decoded(core.Bytes(s))))
			return 1
		}},
	{Name: "gw.url.query",
		Doc:     "Writes a table as a query: names in the order in which they were set, values encoded, a list as several pairs.",
		Params:  list(p("parameters", "table<string, string|number|string[]>", "")),
		Returns: list(p("query", "string", "without the question mark")),
		Do: func(a vm.Args) int {
			query := appendForm(a, nil, a.Readable(1))
			a.L.Push(str(query))
			return 1
		}},
}, urlPartFuncs...)

// appendForm appends a table's pairs, encoded, to a query or a form.
func appendForm(a vm.Args, query []byte, parameters *lua.LTable) []byte {
	add := func(name string, v lua.LValue) {
		value, ok := text(v)
		if !ok {
			a.Raise("%s is a %s: a parameter is a string or a number", visible(name), v.Type())
		}
		a.CheckString(len(query) + 3*(len(name)+len(value)))
		query = appendPair(query, name, value)
	}
	for key, v := parameters.Next(lua.LNil); key != lua.LNil; key, v = parameters.Next(key) {
		name, ok := text(key)
		if !ok {
			a.Raise("parameters have names, not %s", describe(key))
		}
		items, ok := v.(*lua.LTable)
		if !ok {
			add(name, v)
			continue
		}
		items = vm.Thaw(items)
		for i := 1; i <= items.MaxN(); i++ {
			add(name, items.RawGetInt(i))
		}
	}
	return query
}
