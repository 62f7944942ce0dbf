package luaapi

import (
	"maps"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// Funcs is the binding table of gw: what registers the functions, checks their phases, and makes stubs and documentation. Each call
// makes a new slice.
func Funcs() []vm.Func {
	var all []vm.Func
	for _, module := range [][]vm.Func{respondFuncs, logFuncs, jsonFuncs, jwtFuncs, limitFuncs, balanceFuncs, upstreamFuncs, sharedFuncs,
		cryptoFuncs, reFuncs, pathFuncs, timeFuncs, uuidFuncs, metricFuncs, envFuncs, fileFuncs} {
		all = append(all, module...)
	}
	return all
}

// Methods is the part of the binding table that stands on handles.
func Methods() []vm.Func {
	var all []vm.Func
	for _, of := range [][]vm.Func{requestMethods, queryMethods, responseMethods, entryMethods, metricMethods} {
		all = append(all, of...)
	}
	return all
}

// values adds gw's constants to those of the standard library.
func values(std map[string]lua.LValue) map[string]lua.LValue {
	maps.Copy(std, map[string]lua.LValue{"gw.json.null": jsonNull})
	return std
}

// caches are what a VM remembers of work on values that cannot change.
type caches struct {
	buffer   []byte // for encoding; empty between two uses
	patterns map[any]patterns
	regexps  regexps
}

func cachesOf(v *vm.VM) *caches { return &v.Data.(*machine).cache }

// p and r shorten the tables of parameters and results.
func p(name, kind, doc string) vm.Param { return vm.Param{Name: name, Type: kind, Doc: doc} }

func opt(name, kind, doc string) vm.Param {
	return vm.Param{Name: name, Type: kind, Doc: doc, Optional: true}
}

func list(of ...vm.Param) []vm.Param { return of }

var errParam = p("err", "string?", "why not")
