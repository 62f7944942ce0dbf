package luaapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
	"github.com/moongate/moongate/luaapi/vm"
)

// BenchmarkBindings runs the example of every function of the binding table, once a request; Nothing is what that costs without one.
func BenchmarkBindings(b *testing.B) {
	b.Run("Nothing", func(b *testing.B) { benchmarkExample(b, vm.Func{Name: "gw.nothing"}, "") })
	for _, f := range append(luaapi.Funcs(), luaapi.Methods()...) {
		if luaapi.MayBeCalledIn(f, "on_request") || luaapi.MayBeCalledIn(f, "on_response") || luaapi.MayBeCalledIn(f, "on_log") {
			b.Run(f.Name, func(b *testing.B) { benchmarkExample(b, f, luaapi.Example(f.Name)) })
		}
	}
}

func benchmarkExample(b *testing.B, f vm.Func, example string) {
	atLoad := ""
	if ofLoad(f) { // the first line makes what the second uses
		atLoad, example, _ = strings.Cut(example, "\n")
	}
	place := phasesOf[0]
	for _, p := range phasesOf {
		if luaapi.MayBeCalledIn(f, p.function) {
			place = p
			break
		}
	}
	w := exampleBench(b, atLoad+"\n"+filter(place.function, place.parameter, example))
	b.ReportAllocs()
	for b.Loop() {
		w.Do(exampleRequest)
		w.Lines = w.Lines[:0]
		w.Log()
	}
}

// BenchmarkIPSet looks addresses up in ten thousand networks of each version.
func BenchmarkIPSet(b *testing.B) {
	var texts strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&texts, "10.%d.%d.%d/30\n2001:db8:%x:%x::/64\n", i>>8&255, i&255, i%64*4, i, i)
	}
	for name, address := range map[string]string{"v4": "10.20.136.20", "v6": "2001:db8:1388:1388::7", "v4Miss": "192.0.2.1"} {
		b.Run(name, func(b *testing.B) {
			benchmarkRequest(b, "[scripts]\nmax_string = \"8MiB\"\n", map[string]string{"filter": "local set = gw.ip.set([[" + texts.String() + "]])\n" + onRequest(
				"local has, a = set.has, \"" + address + "\" for i = 1, 100 do has(set, a) end")["filter"]}, luatest.Request{})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/match")
		})
	}
}
