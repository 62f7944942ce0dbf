package luaapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
	"github.com/moongate/moongate/metrics"
)

func TestRespondAnswersAsItIsTold(t *testing.T) {
	for call, want := range map[string]struct {
		status      int
		body, ctype string
	}{
		`gw.respond(200)`:                {200, "", ""},
		`gw.respond(204)`:                {204, "", ""},
		`gw.respond(200, "text")`:        {200, "text", "text/plain; charset=utf-8"},
		`gw.respond(200, 1e15)`:          {200, "1000000000000000", "text/plain; charset=utf-8"},
		`gw.respond(201, { a = { 1 } })`: {201, `{"a":[1]}`, "application/json"},
		`gw.respond(403)`:                {403, `{"code":403,"message":"forbidden","request_id":"request-1"}` + "\n", "application/json"},
		`gw.respond(403, "say \"no\"")`:  {403, `{"code":403,"message":"say \"no\"","request_id":"request-1"}` + "\n", "application/json"},
		`gw.respond(403, { why = "x" })`: {403, `{"why":"x"}`, "application/json"},
		`gw.respond(404, "<p>", { ["Content-Type"] = "text/html" })`:     {404, "<p>", "text/html"},
		`gw.respond(200, { 1 }, { ["content-type"] = "application/x" })`: {200, "[1]", "application/x"},
	} {
		b := bench(t, "", onRequest("return "+call))
		a := b.Do(luatest.Request{})
		if a.Status != want.status || a.Body != want.body || a.Header("Content-Type") != want.ctype || a.Source != "filter" || a.Err != nil {
			t.Errorf("%s: %+v, want %+v", call, a, want)
		}
	}
	a, _ := run(t, `return gw.respond(200, "", { ["X-B"] = 1, ["X-A"] = { "1", "2" } })`, luatest.Request{})
	if got := a.Headers; len(got) != 3 || got[0] != [2]string{"X-B", "1"} || got[2] != [2]string{"X-A", "2"} {
		t.Errorf("headers %v", got)
	}
	if a, _ := run(t, `return gw.redirect("/a b?c=d#e", 307)`, luatest.Request{}); a.Status != 307 || a.Header("Location") != "/a%20b?c=d#e" {
		t.Errorf("%+v", a)
	}
}

func TestTheLogSaysWhereALineComesFrom(t *testing.T) {
	b := bench(t, "", onRequest(`
		gw.log.warn("looked at", { n = 12345678901234, text = "a\nb", list = { 1 }, f = 0.5, null = gw.json.null })
		print("printed", 1)
	`))
	b.Do(luatest.Request{})
	lines := strings.Split(strings.TrimSpace(b.Log()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"level": "WARN", "msg": "looked at", "stage": "transform", "script": "filter", "request_id": "request-1",
		"trace_id": "trace-1", "n": 12345678901234.0, "text": "a\nb", "list": "[1]", "f": "0.5", "null": "null"} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	if !strings.Contains(lines[1], `"msg":"printed\t1"`) || !strings.Contains(lines[1], "request-1") {
		t.Errorf("print: %s", lines[1])
	}
}

func TestVerifiedTokensAreRememberedOverReloads(t *testing.T) {
	token, err := auth.Sign([]byte(secret), map[string]any{"sub": "tom", "n": json.Number("12345678901234567890"), "none": nil, "list": []any{1, nil}, "deep": map[string]any{"a": true}}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"gateway.toml": config + "[filter.filter]\nsecret = \"" + secret + "\"\n",
		"scripts/filter.lua": `return { stage = "transform", config = { secret = "secret" }, on_request = function(req, ctx, conf)
			local claims = assert(gw.jwt.verify(req.bearer, conf))
			assert(claims.sub == "tom" and tostring(claims.n) == "12345678901234567890" and claims.none == nil and claims.deep.a == true)
			assert(claims.list[2] == gw.json.null and #claims.list == 2)
			assert(not pcall(function() claims.sub = "root" end) and not pcall(function() claims.deep.a = false end))
			assert(gw.jwt.verify(req.bearer, conf) == claims)
			assert(gw.jwt.verify(req.bearer, { secret = conf.secret }) == claims)
			local none, err, reason = gw.jwt.verify(nil, conf)
			assert(none == nil and err == "missing bearer token" and reason ~= nil)
			none, err = gw.jwt.verify(req.bearer .. "x", conf)
			assert(none == nil and err == "token invalid")
			req.headers["X-Claims"] = tostring(claims)
		end }`,
	}
	seen := map[string]bool{}
	var before *luatest.Bench
	for range 2 {
		b, err := luatest.New(luatest.Options{Files: files, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		b.Upstream = func(f luatest.Forwarded) luatest.Answer {
			seen[f.Header("X-Claims")] = true
			return luatest.Answer{Status: 200}
		}
		if a := b.Do(luatest.Request{Headers: lines("Authorization", "Bearer "+token)}); a.Err != nil {
			t.Fatal(a.Err)
		}
		before = b
	}
	if len(seen) != 1 {
		t.Errorf("the claims are %d tables, want the same one after a reload: %v", len(seen), seen)
	}
}

func TestEachFilterOnEachRouteHasALimiterOfItsOwn(t *testing.T) {
	settings := `
[filter.rate_limit]
rate = "3/m"
[limiter.shared]
rate = "1/m"
[[route]]
name = "b"
path = "/b"
upstream = "main"
[[route]]
name = "c"
path = "/c"
upstream = "main"
[route.filter.rate_limit]
rate = "2/m"
[filter.second]
script = "rate_limit"
enabled = false
[[route]]
name = "d"
path = "/d"
upstream = "main"
[route.filter.second]
limiter = "shared"
[route.filter.rate_limit]
enabled = false
`
	files := map[string]string{"gateway.toml": config + settings, "scripts/rate_limit.lua": scriptFile(t, "rate_limit")}
	b, err := luatest.New(luatest.Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	passes := func(b *luatest.Bench, route string) (n int) {
		for b.Do(luatest.Request{Route: route}).Status == 200 {
			n++
		}
		return n
	}
	for route, want := range map[string]int{"all": 3, "b": 3, "c": 2, "d": 1} {
		if got := passes(b, route); got != want {
			t.Errorf("%s: %d passed, want %d", route, got, want)
		}
	}
	files["gateway.toml"] = strings.Replace(files["gateway.toml"], `rate = "2/m"`, `rate = "4/m"`, 1)
	after, err := luatest.New(luatest.Options{Files: files, Before: b})
	if err != nil {
		t.Fatal(err)
	}
	if got := passes(after, "b"); got != 0 {
		t.Errorf("a reload refilled b: %d passed", got)
	}
	if got := passes(after, "c"); got != 2 {
		t.Errorf("c was raised from 2 to 4: %d passed, want 2", got)
	}
	files["gateway.toml"] = config + "[filter.rate_limit]\nrate = \"5/s\"\nlimiter = \"x\"\n[limiter.x]\nrate = \"1/s\"\n"
	if _, err := luatest.New(luatest.Options{Files: files}); err == nil || !strings.Contains(err.Error(), "already declared") {
		t.Errorf("two rates for one name: %v", err)
	}
}

func TestAFilterChoosesUpstreamAndEndpoint(t *testing.T) {
	_, seen := run(t, `
		assert(ctx.upstream == "main" and ctx.endpoint == nil)
		ctx.upstream = "canary"
		assert(ctx.upstream == "canary")
		ctx.upstream = nil
		local e = gw.balance.pick("canary")
		assert(e.upstream == "canary" and e.url == "http://127.0.0.1:9003" and tostring(e) == e.url and e.weight == 1 and e.address == "127.0.0.1:9003")
		ctx.endpoint = e
		assert(ctx.endpoint == e and ctx.upstream == "canary")
		ctx.hash, ctx.user = "k", 42
		assert(ctx.hash == "k" and ctx.user == "42" and ctx.request_id == "request-1" and ctx.trace_id == "trace-1")
		assert(not pcall(function() return e.port end))
	`, luatest.Request{})
	if seen.Endpoint != "http://127.0.0.1:9003" || seen.Upstream != "canary" {
		t.Errorf("%+v", seen)
	}
}

func TestFilesAreReadAtLoadFromTheirFolderAlone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"scripts/page.html": "<p>hi</p>", "outside.txt": "secret"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside.txt", filepath.Join(dir, "scripts/link.txt")); err != nil {
		t.Fatal(err)
	}
	b, err := luatest.New(luatest.Options{Folder: filepath.Join(dir, "scripts"), Files: map[string]string{
		"gateway.toml": config + oneVM,
		"scripts/filter.lua": `
			local page = assert(gw.file.read("page.html"))
			for _, name in ipairs { "../outside.txt", "link.txt", "/etc/hostname", "missing" } do
				local text, err = gw.file.read(name)
				assert(text == nil and err, name)
			end
			return { stage = "transform", on_request = function() return gw.respond(200, page) end }`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scripts/page.html"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if a := b.Do(luatest.Request{}); a.Body != "<p>hi</p>" {
		t.Errorf("a VM that is made later sees %q", a.Body)
	}
}

func TestMetricsOfScriptsAndFiltersAreScraped(t *testing.T) {
	b := bench(t, short, map[string]string{"filter": `
		local seen = gw.metric.counter("seen", { "path" })
		local depth = gw.metric.gauge("depth")
		local took = gw.metric.histogram("took_seconds")
		return { stage = "transform", on_request = function(req)
			seen:inc(req.path) seen:add(2, req.path) depth:set(7) took:observe(0.002)
			assert(not pcall(seen.inc, seen) and not pcall(seen.set, seen, 1, "x") and not pcall(function() seen.x = 1 end))
			if req.path == "/bad" then error("x") end
			if req.path == "/slow" then while true do end end
		end }`})
	m, err := metrics.New(metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := m.Plan(metrics.Generation{Routes: []string{"all"}, Upstreams: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := luaapi.Build(luaapi.Options{Config: b.Config, Routes: []*core.Route{b.Route("all")}, Metrics: plan})
	if err != nil {
		t.Fatal(err)
	}
	plan.Commit(p)
	p.Commit()
	b.Pipeline = p
	for _, path := range []string{"/a\xff", "/a\xff", "/bad", "/slow"} {
		b.Do(luatest.Request{Target: path})
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		"moongate_script_seen_total{path=\"/a\ufffd\"} 6", "moongate_script_depth 7", "moongate_script_took_seconds_count 4",
		`moongate_filter_duration_seconds_count{script="filter",stage="transform"} 4`, `moongate_filter_errors_total{script="filter",stage="transform"} 2`,
		`moongate_filter_timeouts_total{script="filter",stage="transform"} 1`, `moongate_vm_pool_acquires_total{stage="transform"} 4`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is not in the scrape", want)
		}
	}
}
