package luaapi_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/metrics"
)

// flatRequests is how many requests the test below makes; the full measure is a million.
var flatRequests = flag.Int("flat.requests", 10000, "requests of TestManyRequestsLeaveNothingBehind")

// fiveScripts use what keeps state between requests, and what makes garbage.
var fiveScripts = map[string]string{
	"count": `return { stage = "log", on_request = function(req, ctx)
		ctx.n = gw.shared.incr("visits", req.client_ip .. gw.uuid.v4(), 1, 60)
		gw.shared.rpush("last", "paths", req.path)
		if gw.shared.llen("last", "paths") > 100 then gw.shared.lpop("last", "paths") end
	end, on_log = function(entry, ctx) entry:write { n = ctx.n } end }`,
	"cached": `return { stage = "limit", on_request = function(req, ctx)
		local v = gw.cache.get_or("key:" .. math.random(100000), 60, function()
			return { name = gw.crypto.hex_encode(gw.crypto.random(16)) }
		end, { jitter = 0.5 })
		req.headers["X-Name"] = v.name
	end }`,
	"body": `return { stage = "auth", on_request = function(req, ctx)
		local doc = req:json()
		doc.seen = { n = ctx.n, list = gw.json.array {} }
		req:set_body(gw.json.encode(doc))
		ctx.user = doc.user
	end }`,
	"texts": `return { stage = "route", on_request = function(req, ctx)
		local parts = {}
		for word in req.path:gmatch("[^/]+") do parts[#parts + 1] = word:upper() .. #parts end
		req.headers["X-Parts"] = table.concat(parts, ",")
		local co = coroutine.wrap(function(a) coroutine.yield(a .. "!") end)
		req.headers["X-Co"] = co(ctx.user)
		if req.path:find("7$") then return gw.respond(403, { why = "seven" }) end
		pcall(error, { code = 1 })
	end }`,
	"answer": `return { stage = "transform", on_response = function(res, ctx)
		res.headers["X-N"] = ctx.n
		if res.status == 403 then res:set_body("no") end
	end }`,
}

// TestManyRequestsLeaveNothingBehind sends requests through five scripts: heap, VMs and goroutines are in the end what they were after
// the first tenth.
func TestManyRequestsLeaveNothingBehind(t *testing.T) {
	b := bench(t, "[scripts]\nwait = \"10s\"\ncache_capacity = \"1MiB\"\nbudget = \"1s\"\n[shared.visits]\ncapacity = \"1MiB\"\n", fiveScripts)
	m, err := metrics.New(metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := m.Plan(metrics.Generation{Routes: []string{"all"}, Upstreams: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := luaapi.Build(luaapi.Options{Config: b.Config, Routes: []*core.Route{b.Route("all")}, Metrics: plan, Services: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	plan.Commit(p)
	p.Commit()
	serveMany(t, p, b.Route("all"), *flatRequests/10)
	heap, goroutines, vms := held(m)
	serveMany(t, p, b.Route("all"), *flatRequests-*flatRequests/10)
	heapAfter, goroutinesAfter, vmsAfter := held(m)
	runtime.KeepAlive(p)
	t.Logf("%d requests: heap %d -> %d bytes, goroutines %d -> %d, VMs %d -> %d", *flatRequests, heap, heapAfter, goroutines, goroutinesAfter, vms, vmsAfter)
	// Caches and stores fill up to the 1 MiB that each may have; VMs are as many as ran at once, at most.
	if heapAfter > heap+4<<20 || goroutinesAfter > goroutines || vmsAfter > 5*workers {
		t.Errorf("%d requests: heap %d -> %d bytes, goroutines %d -> %d, VMs %d -> %d", *flatRequests, heap, heapAfter, goroutines, goroutinesAfter, vms, vmsAfter)
	}
}

const workers = 4

// serveMany serves n requests, some at once.
func serveMany(t *testing.T, p *luaapi.Pipeline, route *core.Route, n int) {
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			x := new(core.Exchange)
			for i := w; i < n; i += workers {
				if err := serveOne(p, route, x, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func serveOne(p *luaapi.Pipeline, route *core.Route, x *core.Exchange, i int) error {
	x.Reset()
	x.Route = route
	x.Request.Method = "POST"
	x.Request.Path = fmt.Appendf(nil, "/users/%d", i)
	x.Request.RawPath = x.Request.Path
	x.Request.ClientIP = netip.MustParseAddr("192.0.2.1")
	x.RequestID, x.TraceID = []byte("r"), []byte("t")
	body := `{"user":"u` + strconv.Itoa(i) + `","list":[1,2,{"a":null}]}`
	x.Request.Header.Add("Content-Type", "application/json")
	x.Request.Body.Attach(strings.NewReader(body), int64(len(body)))
	stages := p.Stages(route)
	x.Response.Status = 200
	for _, s := range stages {
		reply, err := s.Request(x)
		if err != nil {
			return err
		}
		if reply != nil {
			x.Response.Status = reply.Status
			break
		}
	}
	for k := range stages {
		if err := stages[len(stages)-1-k].Response(x); err != nil {
			return err
		}
	}
	for _, s := range stages {
		s.Log(x)
	}
	return x.Err
}

// quiet are services that write no line.
type quiet struct{ core.Services }

func (quiet) AccessLine(*core.Exchange, []byte) {}

// Patience lets one wait for another's loader.
func (quiet) Patience(*core.Route) time.Duration { return time.Minute }

var poolSize = regexp.MustCompile(`(?m)^moongate_vm_pool_size\{.*\} (\d+)$`)

// held is what lives: bytes on the heap, goroutines, VMs.
func held(m *metrics.Metrics) (heap int64, goroutines, vms int) {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, match := range poolSize.FindAllStringSubmatch(w.Body.String(), -1) {
		n, _ := strconv.Atoi(match[1])
		vms += n
	}
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc), runtime.NumGoroutine(), vms
}
