package luaapi

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.env and gw.file: what a script may read from outside.

var envFuncs = []vm.Func{
	{Name: "gw.env",
		Doc:     "Reads an environment variable that `[scripts] env` lists, as it was when the configuration was read; another one raises.",
		Params:  list(p("name", "string", "")),
		Returns: list(p("value", "string?", "nil when it is not set")),
		Do: func(a vm.Args) int {
			w, name := worldOf(a.VM), argText(a, 1)
			if !slices.Contains(w.names, name) {
				a.Raise("%s may not be read: add it to env of [scripts]", describe(lua.LString(visible(name))))
			}
			if value, ok := w.env[name]; ok {
				a.L.Push(lua.LString(string(value)))
			} else {
				a.L.Push(lua.LNil)
			}
			return 1
		}},
}

var fileFuncs = []vm.Func{
	{Name: "gw.file.read", Phases: phaseLoad | phaseInit,
		Doc:     "Reads a file of the scripts folder while the script is loaded: a template, a key. It is read once for a configuration.",
		Params:  list(p("name", "string", "relative to the scripts folder")),
		Returns: list(p("text", "string?", ""), errParam),
		Do: func(a vm.Args) int {
			text, err := worldOf(a.VM).files.get(argText(a, 1))
			if err != nil {
				return a.Fail("%s", strings.TrimPrefix(err.Error(), "openat "))
			}
			a.CheckString(len(text))
			a.L.Push(lua.LString(text))
			return 1
		}},
}
