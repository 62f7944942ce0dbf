package metrics

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source tells at a scrape what has a state of its own, so that nothing outlives what it tells of.
type Source interface {
	// Collect calls the scrape's methods, each name once. It is called from one goroutine for each scrape, must not wait
	// and must not call back into the package.
	Collect(s *Scrape)
}

// Pool is the state of a pool. Counts are since the pool was made.
type Pool struct {
	Size, Busy int // open, and of these in use
	Acquires   uint64
	Waits      uint64        // acquires that had to wait
	Waited     time.Duration // how long they waited in all
	Exhausted  uint64        // ended without
}

// Scrape takes what a Source has to tell.
type Scrape struct{ out chan<- prometheus.Metric }

// VMPool tells of a stage's VMs: how many there are, how many of them wait for something outside, and how many were dropped for
// which reason.
func (s *Scrape) VMPool(stage string, p Pool, waiting int, retired map[string]uint64) {
	s.pool(&vmPool, p, stage)
	s.gauge(vmWaiting, float64(waiting), stage)
	for reason, n := range retired {
		s.counter(vmRetired, float64(n), stage, reason)
	}
}

// Tripped tells whether a script rests.
func (s *Scrape) Tripped(stage, script string, is bool) {
	s.gauge(filterTripped, number(is), stage, script)
}

// KeySource tells of a key set that is fetched.
func (s *Scrape) KeySource(name string, succeeded, failed uint64, keys int) {
	s.counter(keyFetches, float64(succeeded), name, "success")
	s.counter(keyFetches, float64(failed), name, "failure")
	s.gauge(keysKept, float64(keys), name)
}

// VMWaits tells how often a stage's VMs have waited for others, and how often they found no room to.
func (s *Scrape) VMWaits(stage string, waits, refused uint64) {
	s.counter(vmWaits, float64(waits), stage)
	s.counter(vmWaitsRefused, float64(refused), stage)
}

// UpstreamPool tells of the connections to an upstream's endpoints, all together.
func (s *Scrape) UpstreamPool(upstream string, p Pool) { s.pool(&upstreamPool, p, upstream) }

// Retries tells how many requests were made once more because of what an endpoint of an upstream answered.
func (s *Scrape) Retries(upstream string, n uint64) { s.counter(upstreamRetries, float64(n), upstream) }

// Breaker tells of an upstream's circuit breaker: 0 is closed, 1 half-open, 2 open; and how often it was opened.
func (s *Scrape) Breaker(upstream string, state int, opened uint64) {
	s.gauge(breakerState, float64(state), upstream)
	s.counter(breakerOpened, float64(opened), upstream)
}

// Endpoints tells which endpoints of an upstream take requests.
func (s *Scrape) Endpoints(upstream string, ready map[string]bool) {
	n := 0
	for endpoint, ok := range ready {
		if ok {
			n++
		}
		s.gauge(endpointReady, number(ok), upstream, endpoint)
	}
	s.gauge(upstreamReady, float64(n), upstream)
}

// EndpointChecks tells how often an endpoint's health was checked, and what came of it.
func (s *Scrape) EndpointChecks(upstream, endpoint string, passed, failed uint64) {
	s.counter(endpointChecks, float64(passed), upstream, endpoint, "success")
	s.counter(endpointChecks, float64(failed), upstream, endpoint, "failure")
}

// EndpointLoad tells what an endpoint has to carry: requests under way, and how long its answers take.
func (s *Scrape) EndpointLoad(upstream, endpoint string, active int64, latency time.Duration) {
	s.gauge(endpointActive, float64(active), upstream, endpoint)
	s.gauge(endpointLatency, latency.Seconds(), upstream, endpoint)
}

// Upgrades tells of a route's connections that have switched protocols: those open now, and all there were.
func (s *Scrape) Upgrades(route string, open int64, total uint64) {
	s.gauge(upgradesOpen, float64(open), route)
	s.counter(upgrades, float64(total), route)
}

// Clients tells of the connections of clients that are open, and of the requests that are being worked on.
func (s *Scrape) Clients(connections, requests int) {
	s.gauge(connectionsOpen, float64(connections))
	s.gauge(requestsInFlight, float64(requests))
}

// Cut tells how many requests were cut for one reason.
func (s *Scrape) Cut(reason string, requests uint64) { s.counter(httpCut, float64(requests), reason) }

// Handshakes tells of TLS with clients.
func (s *Scrape) Handshakes(succeeded, failed int64) {
	s.counter(tlsHandshakes, float64(succeeded), "success")
	s.counter(tlsHandshakes, float64(failed), "failure")
}

// LogDropped tells how many access log lines were dropped.
func (s *Scrape) LogDropped(lines uint64) { s.counter(logDropped, float64(lines)) }

func (s *Scrape) pool(f *poolFamily, p Pool, name string) {
	s.gauge(f.size, float64(p.Size), name)
	s.gauge(f.busy, float64(p.Busy), name)
	s.counter(f.acquires, float64(p.Acquires), name)
	s.counter(f.waits, float64(p.Waits), name)
	s.counter(f.waited, p.Waited.Seconds(), name)
	s.counter(f.exhausted, float64(p.Exhausted), name)
}

func (s *Scrape) counter(f family, value float64, labels ...string) {
	s.emit(f, prometheus.CounterValue, value, labels)
}

func (s *Scrape) gauge(f family, value float64, labels ...string) {
	s.emit(f, prometheus.GaugeValue, value, labels)
}

func (s *Scrape) emit(f family, kind prometheus.ValueType, value float64, labels []string) {
	for i := range labels {
		labels[i] = printable(labels[i])
	}
	s.out <- prometheus.MustNewConstMetric(f.desc, kind, value, labels...)
}

func (s *Scrape) histogram(f family, h *histogram, b *bounds, labels ...string) {
	for i := range labels {
		labels[i] = printable(labels[i])
	}
	buckets, total := make(map[float64]uint64, len(b)), uint64(0)
	for i := range b {
		total += h.buckets[i].Load()
		buckets[b[i].Seconds()] = total
	}
	total += h.buckets[len(b)].Load()
	s.out <- prometheus.MustNewConstHistogram(f.desc, total, time.Duration(h.sum.Load()).Seconds(), buckets, labels...)
}

// printable makes a label's value valid: bytes that are no UTF-8 become U+FFFD.
func printable(value string) string { return strings.ToValidUTF8(value, "\ufffd") }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// own collects the gateway's own metrics.
type own struct{ m *Metrics }

// Describe implements prometheus.Collector.
func (c own) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families() {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c own) Collect(out chan<- prometheus.Metric) {
	m, s := c.m, &Scrape{out}
	series, filters, source := m.shown()
	for key, v := range series {
		for i, class := range classes {
			n := v.class[i].count()
			s.counter(httpRequests, float64(n), key.route, key.upstream, class)
			if n > 0 {
				s.histogram(httpDuration, &v.class[i], &requestBounds, key.route, key.upstream, class)
			}
		}
	}
	for i, class := range classes {
		s.counter(httpUnrouted, float64(m.unrouted.class[i].count()), class)
	}
	for key, f := range filters {
		s.histogram(filterDuration, &f.time, &filterBounds, key.stage, key.script)
		s.counter(filterErrors, float64(f.errors.Load()), key.stage, key.script)
		s.counter(filterTimeouts, float64(f.timeouts.Load()), key.stage, key.script)
		s.counter(filterTrips, float64(f.trips.Load()), key.stage, key.script)
	}
	for upstream, o := range m.shownOutgoing() {
		s.outgoing(upstream, o)
	}
	s.counter(reloads, float64(m.reloads.succeeded.Load()), "success")
	s.counter(reloads, float64(m.reloads.failed.Load()), "failure")
	s.gauge(reloadSuccessful, number(!m.reloads.broken.Load()))
	s.gauge(reloadTime, float64(m.reloads.last.Load())/1e9)
	s.counter(scriptOverflows, float64(m.overflows.Load()))
	s.gauge(buildInfo, 1, m.options.Version)
	if source != nil {
		source.Collect(s)
	}
}

// scripted collects the metrics of scripts. It describes none, since scripts come and go.
type scripted struct{ m *Metrics }

// Describe implements prometheus.Collector.
func (c scripted) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c scripted) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.m.shownScripts() {
		s.mu.RLock()
		for _, series := range s.series {
			out <- s.metric(series)
		}
		s.mu.RUnlock()
	}
}

func (s *ScriptMetric) metric(series *scriptSeries) prometheus.Metric {
	value := math.Float64frombits(series.value.Load())
	switch s.kind {
	case Counter:
		return prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, value, series.labels...)
	case Gauge:
		return prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, value, series.labels...)
	default:
		buckets, total := make(map[float64]uint64, len(requestBounds)), uint64(0)
		for i := range requestBounds {
			total += series.buckets[i].Load()
			buckets[requestBounds[i].Seconds()] = total
		}
		total += series.buckets[len(requestBounds)].Load()
		return prometheus.MustNewConstHistogram(s.desc, total, value, buckets, series.labels...)
	}
}
