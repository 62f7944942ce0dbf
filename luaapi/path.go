package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

var pathFuncs = []vm.Func{
	{Name: "gw.path.match",
		Doc: "Tells whether a path fits a pattern or one of a list: exact segments, `*` for any one, `**` at the end for any number, also none. " +
			"A segment's ;parameters are not looked at, and a slash at the end counts, as in the route table.",
		Params:  list(p("patterns", "string|string[]", ""), p("path", "string", "such as req.path")),
		Returns: list(p("fits", "boolean", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LBool(patternsArg(a).match(argText(a, 2))))
			return 1
		}},
	{Name: "gw.path.capture",
		Doc: "Gives what the `{name}` segments of a pattern stand for in a path, as they stand there; nil when the path does not fit. Of a list the first pattern " +
			"that fits counts.",
		Params:  list(p("patterns", "string|string[]", "such as `/users/{id}/**`"), p("path", "string", "such as req.path")),
		Returns: list(p("segments", "table<string, string>?", "")),
		Do: func(a vm.Args) int {
			ps, path := patternsArg(a), argText(a, 2)
			a.VM.Charge(len(ps) + len(path)/16)
			for i := range ps {
				segments := newTable()
				if ps[i].walk(path, func(name, value string) { segments.RawSetString(name, lua.LString(value)) }) {
					a.L.Push(segments)
					return 1
				}
			}
			a.L.Push(lua.LNil)
			return 1
		}},
}

const maxPatterns = 256

// patternsArg compiles argument 1, and remembers what cannot change: texts and read-only lists.
func patternsArg(a vm.Args) patterns {
	c := cachesOf(a.VM)
	if ps, ok := c.patterns[a.Get(1)]; ok {
		return ps
	}
	texts, fixed := textsArg(a, "a path pattern or a list of them")
	ps := make(patterns, len(texts))
	for i, text := range texts {
		a.VM.Charge(8 + len(text))
		var err error
		if ps[i], err = compilePattern(text); err != nil {
			a.Bad(1, "%s: %s", describe(lua.LString(visible(text))), err)
		}
	}
	if fixed {
		if c.patterns == nil || len(c.patterns) >= maxPatterns {
			c.patterns = map[lua.LValue]patterns{}
		}
		c.patterns[a.Get(1)] = ps
	}
	return ps
}
