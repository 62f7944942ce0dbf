package luaapi_test

import (
	"os"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/luatest"
)

const secret = "0123456789abcdef0123456789abcdef"

// scriptFile reads one of the project's own scripts.
func scriptFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../scripts/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// benchmarkRequest runs the request functions of one stage.
func benchmarkRequest(b *testing.B, settings string, scripts map[string]string, r luatest.Request) {
	w := bench(b, settings, scripts)
	x := w.Exchange(r)
	stage := w.Pipeline.Stages(x.Route)[0]
	headers := x.Request.Header
	lines := headers.Len()
	b.ReportAllocs()
	for b.Loop() {
		reply, err := stage.Request(x)
		if reply != nil || err != nil {
			b.Fatal(reply, err)
		}
		x.Vars.Set("x", nil)
		if x.Request.Header.Len() > lines+2 {
			b.Fatal("headers grow")
		}
	}
}

func BenchmarkTrivialFilter(b *testing.B) {
	benchmarkRequest(b, "", onRequest(`local v = req.headers["X-In"]
	req.headers["X-Out"] = v`), luatest.Request{Headers: [][2]string{{"User-Agent", "curl"}, {"Accept", "*/*"}, {"X-In", "hello"}}})
}

func BenchmarkEmptyFilter(b *testing.B) {
	benchmarkRequest(b, "", onRequest(``), luatest.Request{})
}

func BenchmarkJWTFilterWithAKnownToken(b *testing.B) {
	token, err := auth.Sign([]byte(secret), map[string]any{"sub": "tom", "role": "admin"}, time.Now().Add(time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	benchmarkRequest(b, "[filter.jwt]\nsecret = \""+secret+"\"\nskip = [\"/api/login\"]\n", map[string]string{"jwt": scriptFile(b, "jwt")},
		luatest.Request{Target: "/api/user", Headers: [][2]string{{"Accept", "*/*"}, {"Authorization", "Bearer " + token}}})
}

func BenchmarkRateLimitFilter(b *testing.B) {
	benchmarkRequest(b, "[filter.rate_limit]\nrate = \"1000000/s\"\nburst = 1000000000\n", map[string]string{"rate_limit": scriptFile(b, "rate_limit")}, luatest.Request{})
}

func BenchmarkAccessLogFilter(b *testing.B) {
	w := bench(b, "", map[string]string{"access_log": scriptFile(b, "access_log")})
	x := w.Exchange(luatest.Request{})
	stage := w.Pipeline.Stages(x.Route)[0]
	b.ReportAllocs()
	for b.Loop() {
		stage.Log(x)
		x.Vars.Set("\x00written", nil)
		w.Lines = w.Lines[:0]
	}
}

func BenchmarkSharedGet(b *testing.B) {
	benchmarkRequest(b, "", onRequest(`local v = gw.shared.get("s", "key")`), luatest.Request{})
}

func BenchmarkSharedIncr(b *testing.B) {
	benchmarkRequest(b, "", onRequest(`gw.shared.incr("s", "key", 1, 60)`), luatest.Request{})
}

func BenchmarkSharedPushAndPop(b *testing.B) {
	benchmarkRequest(b, "", onRequest(`gw.shared.rpush("s", "list", true) gw.shared.lpop("s", "list")`), luatest.Request{})
}

func BenchmarkCacheHit(b *testing.B) {
	benchmarkRequest(b, "", map[string]string{"filter": "local function load() return { name = \"tom\" } end\n" +
		filter("on_request", "req", `local v = gw.cache.get_or("key", 3600, load)`)}, luatest.Request{})
}

func BenchmarkCacheMiss(b *testing.B) {
	benchmarkRequest(b, "", map[string]string{"filter": "local function load() return \"tom\", nil, 0 end\n" +
		filter("on_request", "req", `local v = gw.cache.get_or("key", 3600, load)`)}, luatest.Request{})
}

func BenchmarkTimerRun(b *testing.B) {
	w := bench(b, "", map[string]string{"filter": `gw.time.every(60, function() end) return { stage = "log" }`})
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Pipeline.Tick(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHTTPCall(b *testing.B) {
	benchmarkCalls(b, `gw.http.get { upstream = "main", path = "/users/42" }`)
}

func BenchmarkHTTPCallWithAnswer(b *testing.B) {
	benchmarkCalls(b, `local answer = gw.http.post("http://a.example/x", { json = { id = 42 }, headers = { Accept = "application/json" } })
	local tier = answer:json_get("account.tier") .. answer.headers["X-Key"]`)
}

func BenchmarkHTTPAllOfFour(b *testing.B) {
	benchmarkCalls(b, `gw.http.all { { upstream = "main" }, { upstream = "main" }, { upstream = "main" }, { upstream = "main" } }`)
}

// benchmarkCalls measures what a call costs but for the network.
func benchmarkCalls(b *testing.B, body string) {
	w := bench(b, "", onRequest(body))
	w.Calls = func(luatest.Called) luatest.Answer {
		return luatest.Answer{Status: 200, Body: `{"account":{"tier":"gold"}}`, Headers: [][2]string{{"X-Key", "1"}}}
	}
	x := w.Exchange(luatest.Request{})
	stage := w.Pipeline.Stages(x.Route)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stage.Request(x); err != nil {
			b.Fatal(err)
		}
		w.Called, x.Waited = w.Called[:0], 0
	}
}

func BenchmarkMirror(b *testing.B) {
	w := bench(b, "", onRequest(`gw.mirror("canary")`))
	x := w.Exchange(luatest.Request{})
	stage := w.Pipeline.Stages(x.Route)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stage.Request(x); err != nil {
			b.Fatal(err)
		}
		x.Mirrors = x.Mirrors[:0]
	}
}

func BenchmarkDelay(b *testing.B) {
	benchmarkRequest(b, "", onRequest(`gw.delay(0.5)`), luatest.Request{})
}

func BenchmarkUpstreamEndpoints(b *testing.B) {
	benchmarkRequest(b, "", onRequest(`gw.upstream.endpoints("main")`), luatest.Request{})
}
