// Package stdlib is Lua 5.1's library as the manual says, with budgets: string, table, math, the harmless part of os, and
// the basic functions. It is a binding table for package vm:
//
//	base, err := vm.NewBase(vm.Options{Funcs: stdlib.Funcs(), Values: stdlib.Values()})
//
// Every function that can work long or make long strings charges its VM. What reaches files, processes, other scripts'
// globals or the compiler is left out: io, debug, package, load, dofile, getfenv, collectgarbage and their like.
//
// Where it differs from Lua 5.1, and why, stands in docs/lua/stdlib.md; tests run Lua 5.1's own suite and compare random programs with
// its program.
package stdlib

import (
	"math"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// Funcs returns the binding table of the standard library. Each call makes a new slice, which the caller may extend.
func Funcs() []vm.Func {
	var all []vm.Func
	for _, part := range [][]vm.Func{basicFuncs(), tableAccess(), stringFuncs(), tableFuncs(), mathFuncs(), osFuncs()} {
		all = append(all, part...)
	}
	return all
}

// Values returns the constants of the standard library.
func Values() map[string]lua.LValue {
	return map[string]lua.LValue{
		"_VERSION":  lua.LString("Lua 5.1"),
		"math.pi":   lua.LNumber(math.Pi),
		"math.huge": lua.LNumber(math.Inf(1)),
	}
}

// maxResults is how many values one call may return, as LUAI_MAXCSTACK of Lua 5.1.
const maxResults = 8000

// param and opt shorten the tables below.
func param(name, kind string) vm.Param { return vm.Param{Name: name, Type: kind} }

func opt(name, kind string) vm.Param { return vm.Param{Name: name, Type: kind, Optional: true} }

func params(list ...vm.Param) []vm.Param { return list }
