// Package metrics answers what the gateway counts: every name of a metric stands in names.go and nowhere else, and the
// Prometheus client is known here alone.
//
//	m, err := metrics.New(metrics.Options{Version: "1.2.3"})   // once in a process
//	http.Handle("/metrics", m.Handler())                       // works without a gateway
//
//	p, err := m.Plan(metrics.Generation{Routes: ..., Upstreams: ..., Labels: ...})   // while a generation is built
//	series := p.Series("user", "user-service")                 // handles, resolved beforehand
//	filter := p.Filter("auth", "jwt")
//	p.Commit(source)                                           // when the generation starts to serve
//
//	series.Observe(200, took)                                  // on the hot path: no look-up, no allocation
//	m.Unrouted().Observe(404, took)
//	m.Reloaded(true, time.Now())
//
// A series belongs to names of the configuration: when a generation without its route or upstream is committed it is gone at
// the next scrape, when the name returns it starts from 0, and all others keep counting through the same handles. What has a
// state of its own (pools, endpoints, limiters) is not kept here but asked at each scrape, through [Source]. Scripts get
// metrics of their own from [Plan.Script], with bounded numbers of series.
//
// No label's value ever comes from a client, but through a script, and then it is bounded and made printable: nothing a
// client sends can break a scrape.
package metrics

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options are what holds for the whole process.
type Options struct {
	// Version is the gateway's version, for moongate_build_info.
	Version string
	// ScriptSeries bounds the series of each script metric; 0 means 1000.
	ScriptSeries int
}

// Metrics is all that the process counts. It is safe for concurrent use.
type Metrics struct {
	options  Options
	handler  atomic.Pointer[http.Handler]
	runtime  []prometheus.Collector
	unrouted Series
	reloads  struct {
		succeeded, failed atomic.Uint64
		broken            atomic.Bool  // the last one failed
		last              atomic.Int64 // last success, Unix nanoseconds
	}
	overflows atomic.Uint64

	mu       sync.Mutex // guards what follows, and what plans hold
	live     *Plan
	series   map[seriesKey]*Series    // of the live plan and of one being built
	filters  map[filterKey]*Filter    // likewise
	scripts  map[string]*ScriptMetric // likewise
	outgoing map[string]*Outgoing     // likewise, by upstream
	source   Source
}

// New makes the metrics of a process, with an empty generation. It is to be called once, since the collectors of the Go
// runtime and the process belong to it.
func New(o Options) (*Metrics, error) {
	if o.ScriptSeries <= 0 {
		o.ScriptSeries = 1000
	}
	m := &Metrics{
		options: o,
		runtime: []prometheus.Collector{
			collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		},
		series:   make(map[seriesKey]*Series),
		filters:  make(map[filterKey]*Filter),
		scripts:  make(map[string]*ScriptMetric),
		outgoing: make(map[string]*Outgoing),
	}
	m.reloads.last.Store(time.Now().UnixNano())
	p, err := m.Plan(Generation{})
	if err != nil {
		return nil, err
	}
	p.Commit(nil)
	return m, nil
}

// Handler serves a scrape. It reads what is counted and never waits for the gateway; a metric that cannot be rendered is left
// out and spoils no other.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*m.handler.Load()).ServeHTTP(w, r) })
}

// Unrouted counts the requests that no route took. Its latencies are not shown.
func (m *Metrics) Unrouted() *Series { return &m.unrouted }

// Reloaded counts a try to reload: whether what was read serves now, and when that was.
func (m *Metrics) Reloaded(ok bool, at time.Time) {
	m.reloads.broken.Store(!ok)
	if !ok {
		m.reloads.failed.Add(1)
		return
	}
	m.reloads.succeeded.Add(1)
	m.reloads.last.Store(at.UnixNano())
}

// render makes a handler whose series carry the labels. The error names the label that cannot be.
func (m *Metrics) render(labels map[string]string) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	wrapped := prometheus.WrapRegistererWith(maps.Clone(labels), registry)
	for _, c := range append([]prometheus.Collector{own{m}, scripted{m}}, m.runtime...) {
		if err := wrapped.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}), nil
}
