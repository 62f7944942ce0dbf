package luaapi

import (
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.mirror: copies of requests for another upstream.

// maxMirrors bounds the copies of one request.
const maxMirrors = 4

var mirrorFuncs = []vm.Func{
	{Name: "gw.mirror", Phases: phaseRequest,
		Doc: "Sends a copy of the request to another upstream when the request goes to its own: as all filters have left it, with its body as far as that " +
			"is no longer than `[scripts.mirror] max_body`. Nobody waits for the copy, its answer is thrown away, and what becomes of it is counted and changes " +
			"nothing for the request. A request that is answered here has no copy.",
		Params: list(p("upstream", "string", "its name; an unknown one raises"),
			opt("options", "table", "`fraction` of the requests that are copied, from 0 to 1 (default 1); `headers` that the copy has on top")),
		Returns: list(p("chosen", "boolean", "whether this request is one of the fraction")),
		Do:      mirror},
}

func mirror(a vm.Args) int {
	f := current(a.L)
	name := argText(a, 1)
	f.m.stage.upstream(a.L, name)
	m := core.Mirror{Upstream: name}
	fraction := 1.0
	if a.Has(2) {
		fraction = readMirror(a, a.Readable(2), &m)
	}
	chosen := fraction >= 1 || fraction > 0 && rand.Float64() < fraction
	if chosen {
		if len(f.x.Mirrors) >= maxMirrors {
			a.Raise("more than %d copies of one request", maxMirrors)
		}
		f.x.Mirrors = append(f.x.Mirrors, m)
	}
	a.L.Push(lua.LBool(chosen))
	return 1
}

func readMirror(a vm.Args, t *lua.LTable, m *core.Mirror) (fraction float64) {
	fraction = 1
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		switch key {
		case lua.LString("fraction"):
			n, ok := v.(lua.LNumber)
			if fraction = float64(n); !ok || !(fraction >= 0 && fraction <= 1) {
				a.Bad(2, "fraction is a number from 0 to 1, not %s", describe(v))
			}
		case lua.LString("headers"):
			lines, ok := v.(*lua.LTable)
			if !ok {
				a.Bad(2, "headers are a table, not a %s", v.Type())
			}
			readHeaders(a, vm.Thaw(lines), &m.Header, func(name string) {
				switch kind := core.KindOf(core.Bytes(name)); {
				case kind.Hop(), kind == core.KindHost, kind == core.KindContentLength, kind == core.KindExpect, kind == core.KindTraceID, kind == core.KindLoop:
					a.Bad(2, "header %s is written by the gateway", name)
				}
			})
		default:
			a.Bad(2, "there is no option %s: there are fraction and headers", describe(key))
		}
	}
	return fraction
}
