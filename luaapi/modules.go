package luaapi

import (
	"maps"
	"net/netip"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// module is one namespace of gw.
type module struct {
	name, intro string
	funcs       []vm.Func
}

// modules are all of them, in the order of the documentation.
var modules = []module{
	{"respond", "answers now, without asking the upstream.", respondFuncs},
	{"log", "lines in the gateway's log.", logFuncs},
	{"json", "JSON that keeps its shape and its digits.", jsonFuncs},
	{"jwt", "bearer tokens.", jwtFuncs},
	{"auth", "who calls, by proofs of every kind.", authFuncs},
	{"limit", "how often a caller may come.", limitFuncs},
	{"balance", "one endpoint of an upstream.", balanceFuncs},
	{"upstream", "which upstreams there are.", upstreamFuncs},
	{"http", "requests of a script's own.", httpFuncs},
	{"mirror", "copies of requests for another upstream.", mirrorFuncs},
	{"delay", "requests that are held back.", delayFuncs},
	{"shared", "values, counters and lists that all VMs see, over reloads too.", sharedFuncs},
	{"cache", "what is dear to make: kept for a while, and made by one for all who want it at once.", cacheFuncs},
	{"redis", "the Redis servers of the configuration.", redisFuncs},
	{"crypto", "digests, signatures with a shared key, and texts that carry bytes.", cryptoFuncs},
	{"re", "regular expressions whose time is bounded.", reFuncs},
	{"path", "patterns of paths.", pathFuncs},
	{"ip", "addresses and networks.", ipFuncs},
	{"url", "parts of URLs and their encoding.", urlFuncs},
	{"cookie", "values of Set-Cookie.", cookieFuncs},
	{"time", "moments and their texts.", timeFuncs},
	{"uuid", "names that nobody else has.", uuidFuncs},
	{"metric", "series of your own on /metrics.", metricFuncs},
	{"env", "variables that the configuration lets scripts read.", envFuncs},
	{"file", "files of the scripts folder, at load.", fileFuncs},
}

// Funcs is the binding table of gw: what registers the functions, checks their phases, and makes stubs and documentation. Each call
// makes a new slice.
func Funcs() []vm.Func {
	var all []vm.Func
	for _, m := range modules {
		all = append(all, m.funcs...)
	}
	return all
}

// Methods is the part of the binding table that stands on handles.
func Methods() []vm.Func {
	var all []vm.Func
	for _, of := range [][]vm.Func{requestMethods, queryMethods, responseMethods, entryMethods, metricMethods, verifierMethods, answerMethods, ipSetMethods} {
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
	patterns map[lua.LValue]patterns
	networks map[lua.LValue][]netip.Prefix
	regexps  regexps
	keys     keys
	signers  signers
	names    memberNames
	expected *expectedNames // nil until a JSON text is read
}

func cachesOf(v *vm.VM) *caches { return &v.Data.(*machine).cache }

// p and r shorten the tables of parameters and results.
func p(name, kind, doc string) vm.Param { return vm.Param{Name: name, Type: kind, Doc: doc} }

func opt(name, kind, doc string) vm.Param {
	return vm.Param{Name: name, Type: kind, Doc: doc, Optional: true}
}

func list(of ...vm.Param) []vm.Param { return of }

var errParam = p("err", "string?", "why not")
