package luaapi_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
)

// document is a JSON text of about 10 KB, as APIs send it.
var document = func() string {
	type item struct {
		ID    int            `json:"id"`
		Name  string         `json:"name"`
		Email string         `json:"email"`
		Score float64        `json:"score"`
		Tags  []string       `json:"tags"`
		On    bool           `json:"on"`
		Ref   map[string]any `json:"ref"`
	}
	var items []item
	for i := range 62 {
		items = append(items, item{ID: 100000 + i, Name: "user number " + strings.Repeat("x", i%9), Email: fmt.Sprintf("user%d@example.com", i), Score: float64(i) * 1.25,
			Tags: []string{"alpha", "beta", "gamma"}, On: i%2 == 0, Ref: map[string]any{"a": nil, "b": i}})
	}
	text, err := json.Marshal(map[string]any{"items": items, "total": len(items), "last": map[string]string{"name": "end"}})
	if err != nil {
		panic(err)
	}
	return string(text)
}()

// benchmarkBody runs a request function on the document again and again.
func benchmarkBody(b *testing.B, body string) {
	w := bench(b, patient, onRequest(body))
	x := w.Exchange(luatest.Request{Method: "POST", Body: document})
	stage := w.Pipeline.Stages(x.Route)[0]
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if reply, err := stage.Request(x); reply != nil || err != nil {
			b.Fatal(reply, err)
		}
	}
}

func BenchmarkJSONGetAtTheEnd(b *testing.B) { benchmarkBody(b, `local v = req:json_get("total")`) }

func BenchmarkJSONGetDeep(b *testing.B) { benchmarkBody(b, `local v = req:json_get("items.60.ref.b")`) }

func BenchmarkJSONDecode(b *testing.B) { benchmarkBody(b, `local v = req:json()`) }

func BenchmarkJSONDecodeAndEncode(b *testing.B) {
	benchmarkBody(b, `local v = gw.json.encode(req:json())`)
}

// BenchmarkEncodingJSONDecodeAndEncode is what BenchmarkJSONDecodeAndEncode is held against.
func BenchmarkEncodingJSONDecodeAndEncode(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		var v any
		if err := json.Unmarshal([]byte(document), &v); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}

// scriptsIn makes n scripts of a stage, of which the route runs the first two.
func scriptsIn(b *testing.B, n int) *luatest.Bench {
	scripts := map[string]string{}
	settings := ""
	for i := range n {
		name := fmt.Sprintf("f%03d", i)
		scripts[name] = `local M = { stage = "transform", config = { n = { "integer", default = ` + fmt.Sprint(i) + ` } } }
local function helper(s) return s .. "!" end
function M.on_request(req, ctx, conf) req.headers["X-F"] = helper(req.headers["X-In"] or "none") end
return M`
		if i == n-1 { // for the benchmark that holds VMs
			scripts["zz_last"] = `return { stage = "transform", order = 99, on_request = function() gw.upstream.names() end }`
			settings += "[filter.zz_last]\nenabled = false\n"
		}
		if i > 1 {
			settings += "[filter." + name + "]\nenabled = false\n"
		}
	}
	return bench(b, settings+"[[route]]\nname = \"every\"\npath = \"/every\"\nupstream = \"main\"\n"+everyFilter(n), scripts)
}

func everyFilter(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[route.filter.f%03d]\n", i)
	}
	return b.String() + "[route.filter.zz_last]\n"
}

// BenchmarkTwoScriptsOfMany holds that scripts which a route does not use cost it nothing.
func BenchmarkTwoScriptsOfMany(b *testing.B) {
	for _, n := range []int{2, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := scriptsIn(b, n)
			x := w.Exchange(luatest.Request{Headers: [][2]string{{"X-In", "hello"}}})
			stage := w.Pipeline.Stages(x.Route)[0]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stage.Request(x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVMMemory tells what a VM costs that has loaded so many scripts, in bytes of the heap. It waits in a function of the gateway, so that
// each request needs a VM of its own.
func BenchmarkVMMemory(b *testing.B) {
	for _, n := range []int{2, 50, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := scriptsIn(b, n)
			route := w.Route("every")
			services := waitingServices{arrived: make(chan struct{}), letGo: make(chan struct{})}
			p, err := luaapi.Build(luaapi.Options{Config: w.Config, Routes: []*core.Route{w.Route("all"), route}, Services: services})
			if err != nil {
				b.Fatal(err)
			}
			const vms = 20
			before := heap()
			var done sync.WaitGroup
			for range vms {
				done.Go(func() {
					x := new(core.Exchange)
					x.Route = route
					if _, err := p.Stages(route)[0].Request(x); err != nil {
						b.Error(err)
					}
				})
				<-services.arrived
			}
			close(services.letGo)
			done.Wait()
			each := float64(heap()-before) / vms / 1024
			for b.Loop() {
			}
			b.ReportMetric(each, "KiB/VM")
			runtime.KeepAlive(p)
		})
	}
}

// waitingServices hold whoever asks for the upstreams until they are let go.
type waitingServices struct {
	core.Services
	arrived, letGo chan struct{}
}

func (s waitingServices) Upstreams() []string {
	s.arrived <- struct{}{}
	<-s.letGo
	return nil
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkResponseChunks(b *testing.B) {
	w := bench(b, patient, map[string]string{"filter": `return { stage = "transform", on_response_chunk = function(chunk) end }`})
	text := strings.Repeat("x", 1<<20)
	b.ReportAllocs()
	b.SetBytes(1 << 20)
	buf := make([]byte, 32<<10)
	for b.Loop() {
		x := w.Exchange(luatest.Request{})
		x.Response.Status, x.Reached = 200, 1
		x.Response.Body.Attach(strings.NewReader(text), int64(len(text)))
		if err := w.Pipeline.Stages(x.Route)[0].(core.BodyStage).StreamResponse(x); err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := x.Response.Body.Read(buf); err != nil {
				break
			}
		}
	}
}
