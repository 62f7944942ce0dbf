package metrics_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/moongate/moongate/metrics"
)

// script commits a generation with one script, which declares a metric.
func script(t testing.TB, m *metrics.Metrics, o metrics.ScriptOptions) *metrics.ScriptMetric {
	t.Helper()
	p := plan(t, m, metrics.Generation{})
	p.Filter("log", o.Script)
	s, err := p.Script(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Commit(nil)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestScriptsCountSetAndObserve(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	p := plan(t, m, metrics.Generation{})
	declare := func(name string, kind metrics.ScriptKind, labels ...string) *metrics.ScriptMetric {
		s, err := p.Script(metrics.ScriptOptions{Script: "shop", Name: name, Kind: kind, Labels: labels})
		must(t, err)
		return s
	}
	orders, level, size := declare("orders", metrics.Counter, "tier"), declare("level", metrics.Gauge), declare("reply_seconds", metrics.Histogram, "a", "b")
	p.Commit(nil)
	must(t, orders.Add(1, "gold"))
	must(t, orders.Add(2.5, "gold"))
	must(t, level.Set(-3))
	must(t, level.Add(1))
	must(t, size.Observe(0.3, "x", "y"))
	samples := scrape(t, m)
	wantSample(t, samples, `moongate_script_orders_total{tier="gold"}`, 3.5)
	wantSample(t, samples, `moongate_script_level`, -2)
	wantSample(t, samples, `moongate_script_reply_seconds_bucket{a="x",b="y",le="0.25"}`, 0)
	wantSample(t, samples, `moongate_script_reply_seconds_bucket{a="x",b="y",le="0.5"}`, 1)
	wantSample(t, samples, `moongate_script_reply_seconds_sum{a="x",b="y"}`, 0.3)

	for what, err := range map[string]error{
		"counter below 0":        orders.Add(-1, "gold"),
		"counter not a number":   orders.Add(math.NaN(), "gold"),
		"counter without end":    orders.Add(math.Inf(1), "gold"),
		"counter set":            orders.Set(1, "gold"),
		"counter observed":       orders.Observe(1, "gold"),
		"values missing":         orders.Add(1),
		"values too many":        orders.Add(1, "gold", "silver"),
		"gauge observed":         level.Observe(1),
		"histogram added to":     size.Add(1, "x", "y"),
		"histogram set":          size.Set(1, "x", "y"),
		"histogram not a number": size.Observe(math.NaN(), "x", "y"),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestHostileLabelValuesNeitherPanicNorBreakAScrape(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	s := script(t, m, metrics.ScriptOptions{Script: "shop", Name: "paths", Labels: []string{"path", "host"}})
	long := strings.Repeat("ä", 5000)
	for _, value := range []string{"/\xff.js", "/%ff", "\x80", "a\nb\"c\\", "\x00", "", "\xed\xa0\x80", long, "x" + long, strings.Repeat("\xff", 500), strings.Repeat("\x80", 500)} {
		must(t, s.Add(1, value, "example.com\x80"))
		must(t, s.Add(1, value, "example.com\x80"))
	}
	samples := scrape(t, m)
	wantSample(t, samples, "moongate_script_paths_total{host=\"example.com\ufffd\",path=\"/\ufffd.js\"}", 2)
	wantSample(t, samples, "moongate_script_paths_total{host=\"example.com\ufffd\",path=\""+strings.Repeat("ä", 64)+"\"}", 2)
	for name := range samples {
		if len(name) > 1000 {
			t.Errorf("a name of %d bytes", len(name))
		}
	}
}

func TestValuesThatMeetAtTheirBordersStayApart(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	s := script(t, m, metrics.ScriptOptions{Script: "shop", Name: "pairs", Labels: []string{"a", "b"}})
	must(t, s.Add(1, "x", "yz"))
	must(t, s.Add(1, "xy", "z"))
	must(t, s.Add(1, "x\xff", "z"))
	if names := with(scrape(t, m), "pairs_total"); len(names) != 3 {
		t.Errorf("got %v, want three series", names)
	}
}

func TestTooManySeriesAreCountedTogetherAndVisible(t *testing.T) {
	m := newMetrics(t, metrics.Options{ScriptSeries: 10})
	s := script(t, m, metrics.ScriptOptions{Script: "shop", Name: "paths", Labels: []string{"path"}})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 250 {
				if err := s.Add(1, fmt.Sprint(worker*250+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	must(t, s.Add(0, "again"))
	samples := scrape(t, m)
	if names := with(samples, "paths_total"); len(names) != 11 {
		t.Errorf("%d series, want 10 and the overflow", len(names))
	}
	wantSample(t, samples, `moongate_script_paths_total{path="overflow"}`, 990)
	wantSample(t, samples, `moongate_script_overflows_total`, 991)
}

func TestImpossibleDeclarationsAreRefused(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	p := plan(t, m, metrics.Generation{Labels: map[string]string{"zone": "eu"}})
	_, err := p.Script(metrics.ScriptOptions{Script: "a", Name: "taken", Labels: []string{"x"}})
	must(t, err)
	tests := []metrics.ScriptOptions{
		{Name: ""}, {Name: "Orders"}, {Name: "1st"}, {Name: "a-b"}, {Name: "a b"}, {Name: "é"}, {Name: strings.Repeat("a", 101)},
		{Name: "orders_bucket"}, {Name: "orders_sum"}, {Name: "orders_count"}, {Name: "overflows"}, {Name: "overflows_total"},
		{Name: "orders_total", Kind: metrics.Gauge},
		{Name: "orders", Labels: []string{"zone"}}, {Name: "orders", Labels: []string{"le"}}, {Name: "orders", Labels: []string{"__a"}},
		{Name: "orders", Labels: []string{"a", "a"}}, {Name: "orders", Labels: []string{"a-b"}}, {Name: "orders", Labels: []string{""}},
		{Name: "orders", Labels: strings.Split("a b c d e f g h i", " ")},
		{Name: "taken", Labels: []string{"y"}}, {Name: "taken_total"},
	}
	for _, o := range tests {
		if _, err := p.Script(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	again, err := p.Script(metrics.ScriptOptions{Script: "b", Name: "taken_total", Labels: []string{"x"}})
	if err != nil || again == nil {
		t.Errorf("the same by its whole name: %v", err)
	}
	for i := range 255 {
		_, err := p.Script(metrics.ScriptOptions{Script: "a", Name: fmt.Sprintf("m%d", i)})
		must(t, err)
	}
	if _, err := p.Script(metrics.ScriptOptions{Script: "a", Name: "one_more"}); err == nil {
		t.Error("metrics without bound")
	}
}

func TestScriptMetricsLiveAsLongAsTheirScripts(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	o := metrics.ScriptOptions{Script: "shop", Name: "orders", Labels: []string{"tier"}}
	first := script(t, m, o)
	must(t, first.Add(1, "gold"))
	second := script(t, m, o) // a reload, the script unchanged
	must(t, second.Add(1, "gold"))
	wantSample(t, scrape(t, m), `moongate_script_orders_total{tier="gold"}`, 2)

	p := plan(t, m, metrics.Generation{}) // the script lives on but declares when it is first run
	p.Filter("log", "shop")
	p.Commit(nil)
	wantSample(t, scrape(t, m), `moongate_script_orders_total{tier="gold"}`, 2)

	o.Labels = []string{"tier", "shop"} // edited
	third := script(t, m, o)
	must(t, third.Add(1, "gold", "x"))
	must(t, first.Add(1, "gold"))
	samples := scrape(t, m)
	wantSample(t, samples, `moongate_script_orders_total{shop="x",tier="gold"}`, 1)
	if names := with(samples, "orders_total"); len(names) != 1 {
		t.Errorf("got %v, want the new shape alone", names)
	}

	p = plan(t, m, metrics.Generation{Labels: map[string]string{"shop": "x"}}) // a constant label of the same name
	p.Filter("log", "shop")
	p.Commit(nil)
	if names := with(scrape(t, m), "orders_total"); len(names) != 0 {
		t.Errorf("left over: %v", names)
	}

	must(t, script(t, m, o).Add(1, "gold", "x"))
	plan(t, m, metrics.Generation{}).Commit(nil) // deleted
	if names := with(scrape(t, m), "orders_total"); len(names) != 0 {
		t.Errorf("left over: %v", names)
	}
	must(t, script(t, m, o).Add(1, "gold", "x"))
	wantSample(t, scrape(t, m), `moongate_script_orders_total{shop="x",tier="gold"}`, 1)
}

func TestScrapesAndReloadsAndRequestsAtOnce(t *testing.T) {
	m := newMetrics(t, metrics.Options{})
	g := metrics.Generation{Routes: []string{"r"}, Upstreams: []string{"u"}}
	p := plan(t, m, g)
	p.Commit(nil)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				p.Series("r", "u").Observe(200, 1)
				if s, err := p.Script(metrics.ScriptOptions{Script: "shop", Name: "orders", Labels: []string{"a"}}); err != nil || s.Add(1, "x") != nil {
					t.Error("a script's metric failed", err)
					return
				}
			}
		})
	}
	last := 0.0
	for range 20 {
		next := plan(t, m, g)
		next.Filter("log", "shop")
		next.Commit(nil)
		now := scrape(t, m)[`moongate_http_requests_total{class="2xx",route="r",upstream="u"}`]
		if now < last {
			t.Errorf("a counter went down from %v to %v", last, now)
		}
		last = now
	}
	close(stop)
	group.Wait()
}

func BenchmarkScriptAdd(b *testing.B) {
	m := newMetrics(b, metrics.Options{})
	s := script(b, m, metrics.ScriptOptions{Script: "shop", Name: "orders", Labels: []string{"tier", "method"}})
	values := []string{"gold", "GET"}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Add(1, values...); err != nil {
			b.Fatal(err)
		}
	}
}
