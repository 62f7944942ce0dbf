package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// whole is a gateway within the test, with its configuration and its admin listener.
type whole struct {
	*app
	t      testing.TB
	folder string
}

// openWhole starts one. The admin listener is where the configuration says.
func openWhole(t testing.TB, files map[string]string) *whole {
	t.Helper()
	w := &whole{t: t, folder: t.TempDir()}
	for name, text := range files {
		w.write(name, text)
	}
	log := newTranscript()
	var err error
	if w.app, err = openApp(runOptions{config: filepath.Join(w.folder, "gateway.toml"), listen: "127.0.0.1:0"}, streams{io.Discard, log}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return w
}

func (w *whole) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *whole) mustReload() {
	w.t.Helper()
	if _, err := w.reload(); err != nil {
		w.t.Fatal(err)
	}
}

// ask wants a 200 and gives its body. Each asks over a connection of its own.
func (w *whole) ask(url string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("%s: %s %v", url, resp.Status, err)
	}
	return string(text)
}

func (w *whole) path(path string) string { return "http://" + w.gateway.Addresses()[0] + path }

// scrape gives every sample by its name with labels.
func (w *whole) scrape() map[string]float64 {
	w.t.Helper()
	samples := map[string]float64{}
	for line := range strings.Lines(w.ask("http://" + w.admin.Addr().String() + "/metrics")) {
		key, value := splitSeries(line)
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if _, twice := samples[key]; twice {
			w.t.Errorf("%s stands twice", key)
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		samples[key] = n
	}
	return samples
}

// onlyRises tells whether a sample may only rise.
func onlyRises(key string) bool {
	name, _, _ := strings.Cut(key, "{")
	for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// keeper is a script with all that is counted: its own metrics, a store, a cache, a timer, a limiter.
const keeper = `
local seen = gw.metric.counter("seen", { "path" })
local M = { stage = "transform" }
gw.time.every(3600, function() gw.shared.incr("ticks", "n") end)
function M.on_request(req)
  seen:inc(req.path)
  gw.limit.take("plenty", "all")
  req.headers["X-Count"] = gw.shared.incr("counts", "n")
  req.headers["X-Cached"] = gw.cache.get_or("id", 3600, gw.uuid.v4)
end
return M
`

// TestCountersNeverFallOverReloads: routes, upstreams and a script come, go and change over ten reloads, then the admin listener moves.
// Traefik, Telegraf and Envoy Gateway each crashed here.
func TestCountersNeverFallOverReloads(t *testing.T) {
	one := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Count")) }))
	defer one.Close()
	configured := func(admin string, n int) string {
		text := "[admin]\naddress = \"" + admin + "\"\n[limiter.plenty]\nrate = \"1000/s\"\n[[upstream]]\nname = \"one\"\nendpoints = [\"" + one.URL + "\"]\n[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"one\"\n"
		if n > 0 {
			text += fmt.Sprintf("[[upstream]]\nname = \"other-%d\"\nendpoints = [\"%s\"]\n[[route]]\nname = \"r%d\"\npath = \"/r%d\"\nupstream = \"other-%d\"\n", n%3, one.URL, n%4, n%4, n%3)
		}
		return text
	}
	w := openWhole(t, map[string]string{"gateway.toml": configured("127.0.0.1:0", 0), "scripts/keeper.lua": keeper})
	served := 0
	use := func() {
		t.Helper()
		served++
		if got := w.ask(w.path("/a")); got != strconv.Itoa(served) {
			t.Errorf("request %d was counted as %s", served, got)
		}
	}
	last := map[string]float64{}
	look := func(what string) {
		t.Helper()
		use()
		now := w.scrape()
		for key, value := range now {
			if before, ok := last[key]; ok && onlyRises(key) && value < before {
				t.Errorf("%s: %s fell from %v to %v", what, key, before, value)
			}
		}
		for key := range last {
			lasts := !strings.Contains(key, `"other-`) && !strings.Contains(key, `route="r`) && !strings.Contains(key, "go_") && !strings.Contains(key, "extra")
			if _, ok := now[key]; lasts && !ok && onlyRises(key) {
				t.Errorf("%s: %s is gone", what, key)
			}
		}
		last = now
	}
	look("at the start")
	for n := range 10 {
		w.write("gateway.toml", configured("127.0.0.1:0", n+1))
		w.write("scripts/extra.lua", fmt.Sprintf("local m = gw.metric.%s(\"extra\", { \"k%d\" })\nreturn { stage = \"log\", on_request = function() m:%s\"v\") end }",
			[]string{"counter", "gauge"}[n%2], n, []string{"inc(", "add(1, "}[n%2]))
		w.mustReload()
		look(fmt.Sprintf("reload %d", n+1))
	}
	old := w.admin.Addr().String()
	w.write("gateway.toml", configured("localhost:0", 10))
	w.mustReload()
	if w.admin.Addr().String() == old {
		t.Fatal("the admin listener has not moved")
	}
	look("the admin listener moved")
	for key, want := range map[string]float64{
		`moongate_http_requests_total{class="2xx",route="all",upstream="one"}`: 12,
		`moongate_script_seen_total{path="/a"}`:                                12,
		`moongate_reload_attempts_total{result="success"}`:                     11,
		`moongate_cache_lookups_total{result="hit",script="keeper"}`:           11,
		`moongate_shared_entries{store="counts"}`:                              1,
		`moongate_timer_runs_total{result="success",script="keeper"}`:          1,
	} {
		var got float64 // a request counts once it has ended, which may be a moment after its answer was read
		if !until(func() bool { got = w.scrape()[key]; return got == want }) {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if resp, err := http.Get("http://" + old + "/metrics"); err == nil {
		resp.Body.Close()
		t.Error("the old address still answers")
	}
}

// TestSeriesOfAnUpstreamGoAtTheFirstScrape: with its endpoints, and none comes back with it that belonged to its old address.
func TestSeriesOfAnUpstreamGoAtTheFirstScrape(t *testing.T) {
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	one, two, moved := httptest.NewServer(answer), httptest.NewServer(answer), httptest.NewServer(answer)
	for _, s := range []*httptest.Server{one, two, moved} {
		defer s.Close()
	}
	configured := func(urls ...string) string {
		text := "[admin]\naddress = \"127.0.0.1:0\"\n"
		for i, url := range urls {
			text += fmt.Sprintf("[[upstream]]\nname = \"u%d\"\nendpoints = [%q]\n[[route]]\nname = \"r%d\"\npath = \"/%d\"\nupstream = \"u%d\"\n", i, url, i, i, i)
		}
		return text
	}
	w := openWhole(t, map[string]string{"gateway.toml": configured(one.URL, two.URL), "scripts/.keep": ""})
	address := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	holding := func(text string) (names []string) {
		for key := range w.scrape() {
			if strings.Contains(key, text) {
				names = append(names, key)
			}
		}
		return names
	}
	const kept = `moongate_http_requests_total{class="2xx",route="r0",upstream="u0"}`
	w.ask(w.path("/0"))
	w.ask(w.path("/1"))
	if !until(func() bool { return w.scrape()[kept] == 1 }) {
		t.Fatalf("%s is %v", kept, w.scrape()[kept])
	}
	if len(holding(address(two))) == 0 || len(holding(`upstream="u1"`)) < 3 {
		t.Fatalf("no series to begin with: %v, %v", holding(address(two)), holding(`upstream="u1"`))
	}
	w.write("gateway.toml", configured(one.URL))
	w.mustReload()
	for _, text := range []string{`"u1"`, `"r1"`, address(two)} {
		if left := holding(text); len(left) > 0 {
			t.Errorf("at the first scrape after the reload: %v", left)
		}
	}
	w.write("gateway.toml", configured(one.URL, moved.URL))
	w.mustReload()
	samples := w.scrape()
	if left := holding(address(two)); len(left) > 0 {
		t.Errorf("the upstream came back with another address: %v", left)
	}
	if ready := `moongate_upstream_endpoint_ready{endpoint="` + address(moved) + `",upstream="u1"}`; samples[ready] != 1 || samples[kept] != 1 {
		t.Errorf("%s is %v, %s is %v", ready, samples[ready], kept, samples[kept])
	}
}

// TestReloadsOfScriptsLeaveNothingBehind: a hundred of the same files and a hundred of changed ones, with requests between.
func TestReloadsOfScriptsLeaveNothingBehind(t *testing.T) {
	one := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer one.Close()
	configured := func(n int) string {
		return fmt.Sprintf("[admin]\naddress = \"127.0.0.1:0\"\n[limiter.plenty]\nrate = \"1000/s\"\nburst = %d\n[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = %q\npriority = %d\n", 1000+n, one.URL, n)
	}
	w := openWhole(t, map[string]string{"gateway.toml": configured(0), "scripts/keeper.lua": keeper})
	round := func(changed bool) {
		for n := range 100 {
			if changed {
				w.write("gateway.toml", configured(n))
				w.write("scripts/keeper.lua", keeper+fmt.Sprintf("-- %d", n))
			}
			w.mustReload()
			if n%10 == 0 {
				w.ask(w.path("/a"))
			}
		}
	}
	held := func() (goroutines, files int, heap uint64) {
		one.CloseClientConnections()
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		list, _ := os.ReadDir("/proc/self/fd") // which is not there everywhere
		return runtime.NumGoroutine(), len(list), m.HeapAlloc
	}
	round(true)
	goroutines, files, heap := held()
	round(false)
	round(true)
	var g, f int
	var b uint64
	if !until(func() bool {
		g, f, b = held()
		return g <= goroutines+4 && f <= files+4 && b <= heap+heap/10+2<<20
	}) {
		t.Errorf("before: %d goroutines, %d descriptors, %d bytes; after 200 reloads: %d, %d, %d", goroutines, files, heap, g, f, b)
	}
}

// TestABodyThatNoScriptReadsStreams: scripts look at everything but the body, in every phase. Each piece of a slow upload is at the
// upstream before the client sends the next, in all more than any buffer holds.
func TestABodyThatNoScriptReadsStreams(t *testing.T) {
	const looks = `return { stage = "transform",
  on_request = function(req, ctx) ctx.length = req.headers["Content-Length"]; req.headers["X-Seen"] = "1" end,
  on_response = function(res, ctx) res.headers["X-Length"] = ctx.length; res.headers["X-Path"] = res.req.path end,
  on_log = function(entry, ctx) entry:write({ length = ctx.length }) end }`
	const pieces, size = 64, 128 << 10
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			read := make(chan int, 1)
			client, url := between(t, w.in, w.out, looks, func(_ http.ResponseWriter, r *http.Request) {
				piece := make([]byte, size)
				for i := range pieces {
					if _, err := io.ReadFull(r.Body, piece); err != nil || piece[0] != byte(i) || piece[size-1] != byte(i) {
						t.Errorf("piece %d: %v", i, err)
						close(read)
						return
					}
					read <- i
				}
				if _, err := r.Body.Read(piece); err != io.EOF {
					t.Errorf("behind the last piece: %v", err)
				}
			})
			r, body := io.Pipe()
			go func() {
				for i := range pieces {
					if _, err := body.Write(bytes.Repeat([]byte{byte(i)}, size)); err != nil {
						return
					}
					if _, ok := <-read; !ok {
						break
					}
				}
				_ = body.Close()
			}()
			resp, err := client.Post(url, "application/octet-stream", r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 || resp.Header.Get("X-Path") != "/" {
				t.Errorf("status %d, %v", resp.StatusCode, resp.Header)
			}
		})
	}
}
