package metrics_test

import (
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/moongate/moongate/metrics"
)

func newMetrics(t testing.TB, o metrics.Options) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func plan(t testing.TB, m *metrics.Metrics, g metrics.Generation) *metrics.Plan {
	t.Helper()
	p, err := m.Plan(g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scrape gives each sample by its name with labels, as the text format writes it, after checking that a scrape works.
func scrape(t testing.TB, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	if w.Code != 200 || !utf8.ValidString(text) {
		t.Fatalf("scrape: %d, valid %v\n%s", w.Code, utf8.ValidString(text), text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("scrape does not parse: %v", err)
	}
	for _, p := range problems {
		t.Errorf("lint: %s: %s", p.Metric, p.Text)
	}
	samples := make(map[string]float64)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			t.Fatalf("sample %q: %v", line, err)
		}
		samples[line[:i]] = value
	}
	return samples
}

// with gives the names of the samples that contain a text.
func with(samples map[string]float64, text string) (names []string) {
	for name := range samples {
		if strings.Contains(name, text) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func wantSample(t testing.TB, samples map[string]float64, name string, want float64) {
	t.Helper()
	if got, ok := samples[name]; !ok || got != want {
		t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
	}
}

// source is a gateway with one of each.
type source struct{ endpoints map[string]bool }

func (s source) Collect(out *metrics.Scrape) {
	pool := metrics.Pool{Size: 3, Busy: 1, Acquires: 10, Waits: 2, Waited: 1500 * time.Millisecond, Exhausted: 1}
	out.Limiter("user/rate_limit", metrics.Limiter{Keys: 3, Refused: 7})
	out.VMPool("auth", pool, 2, map[string]uint64{"timeout": 5})
	out.Tripped("auth", "jwt", true)
	out.Redis("main", metrics.Redis{Up: true, Calls: 5, Failed: 2, Pending: 1})
	for upstream := range map[string]bool{"u1": true} {
		out.UpstreamPool(upstream, pool)
		out.Endpoints(upstream, s.endpoints)
		out.EndpointChecks(upstream, "127.0.0.1:1", 9, 1)
		out.EndpointLoad(upstream, "127.0.0.1:1", 3, time.Millisecond)
		out.Retries(upstream, 6)
		out.Breaker(upstream, 2, 1)
	}
	out.KeySource("https://id.example.com/jwks.json", 3, 1, 2)
	out.LogDropped(4)
	out.Upgrades("user", 2, 5)
	out.Clients(3, 2)
	out.Handshakes(7, 1)
	out.Cut(metrics.CutSlowBody, 3)
	out.Shared("sessions", metrics.Store{Entries: 2, Bytes: 512, Capacity: 1 << 20, Evicted: 3, Expired: 4})
	out.Cache("jwt", metrics.Cache{Store: metrics.Store{Entries: 1}, Hits: 5, Misses: 6, Stale: 7, Waited: 8, Loaded: 9, Failed: 10})
	out.Timers("jwt", 11, 12, 13)
	out.VMWaits("auth", 9, 1)
	out.Mirrors(3)
	out.Delays(1, 8, 2)
}

func TestEveryMetricIsShownAndLintsClean(t *testing.T) {
	m := newMetrics(t, metrics.Options{Version: "1.2.3"})
	p := plan(t, m, metrics.Generation{Routes: []string{"r"}, Upstreams: []string{"u1"}, Labels: map[string]string{"zone": "eu-1"}})
	s, f := p.Series("r", "u1"), p.Filter("auth", "jwt")
	p.Commit(source{map[string]bool{"http://127.0.0.1:1": true, "http://127.0.0.1:2": false}})
	s.Observe(200, 3*time.Millisecond)
	s.Observe(499, time.Minute)
	s.Observe(0, 0)
	m.Unrouted().Observe(404, time.Millisecond)
	f.Observe(30 * time.Microsecond)
	f.Error()
	f.Timeout()
	asked := p.Outgoing("u1")
	asked.Called(3 * time.Millisecond)
	asked.CallFailed()
	asked.Mirrored()
	asked.MirrorFailed()
	asked.MirrorDropped()
	p.Outgoing("").Called(time.Second)
	p.Outgoing("u2").Called(time.Second) // which the configuration has not
	m.Reloaded(true, time.Unix(1000, 0))
	m.Reloaded(false, time.Unix(2000, 0))

	samples := scrape(t, m)
	for name, want := range map[string]float64{
		`moongate_http_requests_total{class="2xx",route="r",upstream="u1",zone="eu-1"}`:                              1,
		`moongate_http_requests_total{class="3xx",route="r",upstream="u1",zone="eu-1"}`:                              0,
		`moongate_http_requests_total{class="4xx",route="r",upstream="u1",zone="eu-1"}`:                              1,
		`moongate_http_requests_total{class="5xx",route="r",upstream="u1",zone="eu-1"}`:                              1,
		`moongate_http_request_duration_seconds_bucket{class="2xx",route="r",upstream="u1",zone="eu-1",le="0.0025"}`: 0,
		`moongate_http_request_duration_seconds_bucket{class="2xx",route="r",upstream="u1",zone="eu-1",le="0.005"}`:  1,
		`moongate_http_request_duration_seconds_bucket{class="4xx",route="r",upstream="u1",zone="eu-1",le="10"}`:     0,
		`moongate_http_request_duration_seconds_bucket{class="4xx",route="r",upstream="u1",zone="eu-1",le="+Inf"}`:   1,
		`moongate_http_request_duration_seconds_sum{class="4xx",route="r",upstream="u1",zone="eu-1"}`:                60,
		`moongate_http_unrouted_requests_total{class="4xx",zone="eu-1"}`:                                             1,
		`moongate_filter_duration_seconds_count{script="jwt",stage="auth",zone="eu-1"}`:                              1,
		`moongate_filter_errors_total{script="jwt",stage="auth",zone="eu-1"}`:                                        1,
		`moongate_filter_timeouts_total{script="jwt",stage="auth",zone="eu-1"}`:                                      1,
		`moongate_http_cut_requests_total{reason="slow_body",zone="eu-1"}`:                                           3,
		`moongate_call_duration_seconds_count{upstream="u1",zone="eu-1"}`:                                            1,
		`moongate_call_duration_seconds_count{upstream="",zone="eu-1"}`:                                              1,
		`moongate_call_errors_total{upstream="u1",zone="eu-1"}`:                                                      1,
		`moongate_mirror_requests_total{result="success",upstream="u1",zone="eu-1"}`:                                 1,
		`moongate_mirror_requests_total{result="failure",upstream="u1",zone="eu-1"}`:                                 1,
		`moongate_mirror_requests_total{result="dropped",upstream="u1",zone="eu-1"}`:                                 1,
		`moongate_mirror_in_flight_requests{zone="eu-1"}`:                                                            3,
		`moongate_delay_waiting_requests{zone="eu-1"}`:                                                               1,
		`moongate_delay_requests_total{zone="eu-1"}`:                                                                 8,
		`moongate_delay_refused_total{zone="eu-1"}`:                                                                  2,
		`moongate_vm_waits_total{stage="auth",zone="eu-1"}`:                                                          9,
		`moongate_vm_waits_refused_total{stage="auth",zone="eu-1"}`:                                                  1,
		`moongate_limiter_refused_total{limiter="user/rate_limit",zone="eu-1"}`:                                      7,
		`moongate_auth_key_fetches_total{result="failure",url="https://id.example.com/jwks.json",zone="eu-1"}`:       1,
		`moongate_auth_keys{url="https://id.example.com/jwks.json",zone="eu-1"}`:                                     2,
		`moongate_vm_pool_size{stage="auth",zone="eu-1"}`:                                                            3,
		`moongate_vm_pool_busy{stage="auth",zone="eu-1"}`:                                                            1,
		`moongate_vm_pool_wait_seconds_total{stage="auth",zone="eu-1"}`:                                              1.5,
		`moongate_upstream_pool_acquires_total{upstream="u1",zone="eu-1"}`:                                           10,
		`moongate_upstream_pool_waits_total{upstream="u1",zone="eu-1"}`:                                              2,
		`moongate_upstream_pool_exhausted_total{upstream="u1",zone="eu-1"}`:                                          1,
		`moongate_upstream_retries_total{upstream="u1",zone="eu-1"}`:                                                 6,
		`moongate_upstream_ready_endpoints{upstream="u1",zone="eu-1"}`:                                               1,
		`moongate_upstream_endpoint_ready{endpoint="http://127.0.0.1:2",upstream="u1",zone="eu-1"}`:                  0,
		`moongate_shared_bytes{store="sessions",zone="eu-1"}`:                                                        512,
		`moongate_shared_evicted_total{store="sessions",zone="eu-1"}`:                                                3,
		`moongate_cache_lookups_total{result="stale",script="jwt",zone="eu-1"}`:                                      7,
		`moongate_cache_loads_total{result="failure",script="jwt",zone="eu-1"}`:                                      10,
		`moongate_timer_runs_total{result="skipped",script="jwt",zone="eu-1"}`:                                       13,
		`moongate_reload_attempts_total{result="success",zone="eu-1"}`:                                               1,
		`moongate_reload_attempts_total{result="failure",zone="eu-1"}`:                                               1,
		`moongate_reload_last_successful{zone="eu-1"}`:                                                               0,
		`moongate_reload_last_success_timestamp_seconds{zone="eu-1"}`:                                                1000,
		`moongate_log_dropped_lines_total{zone="eu-1"}`:                                                              4,
		`moongate_build_info{version="1.2.3",zone="eu-1"}`:                                                           1,
	} {
		wantSample(t, samples, name, want)
	}
	for _, name := range append(metrics.Names(), "go_goroutines", "process_open_fds") {
		if len(with(samples, name)) == 0 {
			t.Errorf("%s is not shown", name)
		}
	}
}

func TestSeriesGoWithTheirNamesAndOthersKeepCounting(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	generation := func(names ...string) *metrics.Plan {
		p := plan(t, m, metrics.Generation{Routes: names, Upstreams: names})
		for _, name := range names {
			p.Series(name, name)
			p.Filter("auth", name)
		}
		p.Commit(nil)
		return p
	}
	one, two := `moongate_http_requests_total{class="2xx",route="one",upstream="one"}`, `moongate_http_requests_total{class="2xx",route="two",upstream="two"}`

	first := generation("one", "two")
	old1, old2, filter := first.Series("one", "one"), first.Series("two", "two"), first.Filter("auth", "two")
	old1.Observe(200, 0)
	old2.Observe(200, 0)
	for range 10 { // reloads that change other things
		generation("one", "two", "three")
	}
	wantSample(t, scrape(t, m), two, 1)

	generation("one")
	old1.Observe(200, 0) // requests of older generations end
	old2.Observe(200, 0)
	filter.Error()
	first.Series("two", "two").Observe(200, 0)
	first.Filter("auth", "two").Error()
	first.Series("one", "one").Observe(200, 0)
	samples := scrape(t, m)
	wantSample(t, samples, one, 3)
	if left := append(with(samples, `"two"`), with(samples, `"three"`)...); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}

	generation("one", "two")
	samples = scrape(t, m)
	wantSample(t, samples, one, 3)
	wantSample(t, samples, two, 0)
	wantSample(t, samples, `moongate_filter_errors_total{script="two",stage="auth"}`, 0)
}

func TestCombinationsMadeByScriptsAreBoundedByTheConfiguration(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	g := metrics.Generation{Routes: []string{"r"}, Upstreams: []string{"u", "canary"}}
	p := plan(t, m, g)
	p.Series("r", "u")
	p.Commit(nil)
	next := plan(t, m, g) // built while the first one still meets new combinations
	p.Series("r", "canary").Observe(200, 0)
	p.Series("r", "").Observe(401, 0)
	p.Series("r", "unknown").Observe(200, 0)
	p.Series("unknown", "u").Observe(200, 0)
	next.Series("r", "canary")
	next.Commit(nil)
	samples := scrape(t, m)
	wantSample(t, samples, `moongate_http_requests_total{class="2xx",route="r",upstream="canary"}`, 1)
	wantSample(t, samples, `moongate_http_requests_total{class="4xx",route="r",upstream=""}`, 1)
	if left := with(samples, "unknown"); len(left) > 0 {
		t.Errorf("names that are not configured: %v", left)
	}
}

func TestAbandonedPlanShowsNothing(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	p := plan(t, m, metrics.Generation{Routes: []string{"r"}, Upstreams: []string{"u"}, Labels: map[string]string{"zone": "x"}})
	p.Series("r", "u").Observe(200, 0)
	p.Filter("auth", "jwt").Error()
	if _, err := p.Script(metrics.ScriptOptions{Script: "jwt", Name: "seen"}); err != nil {
		t.Fatal(err)
	}
	samples := scrape(t, m)
	for _, text := range []string{`"r"`, "jwt", "seen", "zone"} {
		if left := with(samples, text); len(left) > 0 {
			t.Errorf("shown: %v", left)
		}
	}
}

func TestEndpointsThatAreGoneLeaveNoSeries(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	plan(t, m, metrics.Generation{}).Commit(source{map[string]bool{"http://10.0.0.1:80": true}})
	wantSample(t, scrape(t, m), `moongate_upstream_endpoint_ready{endpoint="http://10.0.0.1:80",upstream="u1"}`, 1)
	plan(t, m, metrics.Generation{}).Commit(source{map[string]bool{"http://10.0.0.2:80": true}})
	samples := scrape(t, m)
	if left := with(samples, "10.0.0.1"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	plan(t, m, metrics.Generation{}).Commit(nil)
	if left := with(scrape(t, m), "u1"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestConstantLabelsChangeWithTheGenerationAndCountersStay(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	for i, zone := range []string{"a", "b"} {
		p := plan(t, m, metrics.Generation{Routes: []string{"r"}, Upstreams: []string{"u"}, Labels: map[string]string{"zone": zone}})
		s := p.Series("r", "u")
		p.Commit(nil)
		s.Observe(200, 0)
		wantSample(t, scrape(t, m), `moongate_http_requests_total{class="2xx",route="r",upstream="u",zone="`+zone+`"}`, float64(i+1))
	}
	for _, bad := range []map[string]string{{"route": "x"}, {"class": "x"}, {"le": "x"}, {"__x": "x"}, {"version": "x"}, {"a-b": "x"}, {"": "x"}, {"zone": "\xff"}} {
		if _, err := m.Plan(metrics.Generation{Labels: bad}); err == nil {
			t.Errorf("labels %v were accepted", bad)
		}
	}
}

func TestNamesThatAreNoTextCannotBreakAScrape(t *testing.T) {
	m := newMetrics(t, metrics.Options{Version: "\xff"})
	p := plan(t, m, metrics.Generation{Routes: []string{"\xff"}, Upstreams: []string{"\x80"}})
	p.Series("\xff", "\x80").Observe(200, 0)
	p.Filter("\xfe", "\xfd").Error()
	p.Commit(source{map[string]bool{"\xff\n\"": true}})
	wantSample(t, scrape(t, m), "moongate_http_requests_total{class=\"2xx\",route=\"\ufffd\",upstream=\"\ufffd\"}", 1)
}

func TestObserveDoesNotAllocate(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	p := plan(t, m, metrics.Generation{Routes: []string{"r"}})
	s := p.Series("r", "")
	if n := testing.AllocsPerRun(100, func() { s.Observe(200, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	m := newMetrics(b, metrics.Options{})
	s := plan(b, m, metrics.Generation{Routes: []string{"r"}}).Series("r", "")
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			s.Observe(200, 7*time.Millisecond)
		}
	})
}
