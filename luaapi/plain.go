package luaapi

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// plainModules need no request, no configuration and nothing that outlives a call.
var plainModules = []string{"json", "crypto", "re", "path", "ip", "url", "cookie", "time", "uuid"}

// PlainFuncs is the part of the binding table of gw that works anywhere: what tests of scripts may call, too. A VM that has it needs
// PlainData.
func PlainFuncs() []vm.Func {
	var plain []vm.Func
	for _, m := range modules {
		if !slices.Contains(plainModules, m.name) {
			continue
		}
		for _, f := range m.funcs {
			if f.Phases == 0 {
				plain = append(plain, f)
			}
		}
	}
	return plain
}

// PlainValues adds gw's constants to those of the standard library.
func PlainValues(std map[string]lua.LValue) map[string]lua.LValue { return values(std) }

// PlainData is a new Data for a VM that has PlainFuncs and no stage to run.
func PlainData() any { return newMachine(&stage{world: &world{}}) }
