// Package stdlib is Lua 5.1's library as the manual says, with budgets: string, table, math, the harmless part of os, and
// the basic functions. It is a binding table for package vm:
//
//	base, err := vm.NewBase(vm.Options{Funcs: stdlib.Funcs(), Values: stdlib.Values()})
//
// Every function that can work long or make long strings charges its VM. What reaches files, processes, other scripts'
// globals or the compiler is left out: io, debug, package, load, dofile, getfenv, collectgarbage and their like.
//
// Where it differs from PUC Lua 5.1 (a test compares the two):
//   - tostring and .. write whole numbers below 1e21 in full (PUC: 1e+14); everything else is %.14g.
//   - tonumber knows no "inf", "nan" or hexadecimal fractions; with a base, numbers beyond 64 bits are not cut.
//   - string.format("%s") and %q take strings with NUL whole; gsub takes a lone % at the end of a replacement for nothing.
//   - table.insert at a position below 1 raises. Lists hold 65,535 items; unpack, byte and friends return up to 8,000 values.
//   - a pattern may need 200 levels of recursion at most.
//   - assert raises a message that is no string as it is; xpcall's handler runs after the function has ended; a spent budget
//     is not caught; rawlen is there, and pairs asks __pairs of userdata.
//   - a coroutine ends with the call of the gateway that made it. It cannot yield by "return f()" where f is a renamed yield.
//   - what the machine itself does: for i = "1", 2 wants numbers, -0 from arithmetic is 0, % is exact for large numbers,
//     __gc and weak tables do nothing.
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
