package luaapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
	"github.com/moongate/moongate/luaapi/vm"
)

// exampleRequest is what the examples see.
var exampleRequest = luatest.Request{Method: "POST", Target: "/users/42?tag=a&tag=b", Body: `{"user":{"name":"tom"}}`,
	Headers: [][2]string{{"User-Agent", "curl"}}}

func TestEveryFunctionHasDocAndAnExampleThatRuns(t *testing.T) {
	for _, f := range append(luaapi.Funcs(), luaapi.Methods()...) {
		example := luaapi.Example(f.Name)
		if f.Doc == "" || example == "" {
			t.Errorf("%s has doc %q and example %q", f.Name, f.Doc, example)
			continue
		}
		t.Run(f.Name, func(t *testing.T) { runExample(t, f, example) })
	}
}

// phasesOf are the functions in which examples run, with what they get.
var phasesOf = []struct{ function, parameter string }{{"on_request", "req"}, {"on_response", "res"}, {"on_log", "entry"}}

// ofLoad tells whether a function is a method of what scripts make while they load: metrics and sets.
func ofLoad(f vm.Func) bool {
	return strings.HasPrefix(f.Name, "metric:") || strings.HasPrefix(f.Name, "set:")
}

func runExample(t *testing.T, f vm.Func, example string) {
	source := example + "\n" + `return { stage = "transform" }`
	for _, place := range phasesOf {
		if luaapi.MayBeCalledIn(f, place.function) && !ofLoad(f) {
			source = filter(place.function, place.parameter, example)
			break
		}
	}
	b := exampleBench(t, source)
	a := b.Do(exampleRequest)
	if log := b.Log(); a.Err != nil || strings.Contains(log, "log filter failed") {
		t.Fatalf("%v\n%s", a.Err, log)
	}
}

// exampleBench has what examples speak of.
func exampleBench(t testing.TB, source string) *luatest.Bench {
	t.Helper()
	b, err := luatest.New(luatest.Options{Env: map[string]string{"REGION": "eu-1"}, Files: map[string]string{
		"gateway.toml":       config + "[scripts]\nenv = [\"REGION\"]\n[redis.main]\naddress = \"127.0.0.1:1\"\ntimeout = \"10ms\"\n[limiter.partners]\nrate = \"1/s\"\n[limiter.exports]\nconcurrency = 1\n",
		"scripts/filter.lua": "local verifier = gw.auth.network({ networks = { all = { \"0.0.0.0/0\", \"::/0\" } } })\n" + source,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Redis.Close)
	b.Upstream = func(luatest.Forwarded) luatest.Answer { return luatest.Answer{Status: 200, Body: `{"ok":true}`} }
	return b
}

func TestTheCommittedDocumentationIsCurrent(t *testing.T) {
	for name, text := range luaapi.Docs(luatest.Funcs()) {
		committed, err := os.ReadFile(filepath.Join("..", name))
		if err != nil || string(committed) != text {
			t.Errorf("%s is not what the binding table says: run `go run ./luaapi/gen` (%v)", name, err)
		}
	}
}
