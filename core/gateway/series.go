package gateway

import (
	"sync"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
	"github.com/moongate/moongate/metrics"
)

// routeSeries counts a route's requests by the upstream that they went to. Its handles are resolved beforehand, but for upstreams
// that only filters choose.
type routeSeries struct {
	route    string
	upstream string
	own      *metrics.Series // went to the route's upstream
	local    *metrics.Series // were answered here
	plan     *metrics.Plan
	others   sync.Map // upstream name to *metrics.Series
}

func newRouteSeries(p *metrics.Plan, rt *core.Route) *routeSeries {
	return &routeSeries{route: rt.Name, upstream: rt.Upstream, own: p.Series(rt.Name, rt.Upstream), local: p.Series(rt.Name, ""), plan: p}
}

func (s *routeSeries) of(upstream string) *metrics.Series {
	switch upstream {
	case s.upstream:
		return s.own
	case "":
		return s.local
	}
	if known, ok := s.others.Load(upstream); ok {
		return known.(*metrics.Series)
	}
	found, _ := s.others.LoadOrStore(upstream, s.plan.Series(s.route, upstream))
	return found.(*metrics.Series)
}

// count notes an exchange that has ended. forwarded is the upstream that was asked, "" for none.
func (p *plan) count(x *core.Exchange, forwarded string) {
	took := x.Times.Done.Sub(x.Times.Start)
	if p.series == nil {
		p.unrouted.Observe(x.Response.Status, took)
		return
	}
	p.series.of(forwarded).Observe(x.Response.Status, took)
}

// Collect implements metrics.Source.
func (g *Generation) Collect(s *metrics.Scrape) {
	now := core.Now()
	g.EachUpstream(func(u *upstream.Upstream) {
		sum := metrics.Pool{Exhausted: u.UpgradesRefused()}
		ready := make(map[string]bool)
		for _, e := range u.Endpoints() {
			ready[e.Label()] = u.IsReady(e)
			if l := u.Load(e); l != nil {
				s.EndpointLoad(u.Name(), e.Label(), l.Active(), l.Latency(now))
			}
			if c := u.Checked(e); c.On {
				s.EndpointChecks(u.Name(), e.Label(), c.Passed, c.Failed)
			}
			st := u.Stats(e)
			sum.Size += st.Open
			sum.Busy += st.Open - st.Idle
			sum.Acquires += st.Dials + st.Reuses
			sum.Waits += st.Waits
			sum.Waited += st.Waited
			sum.Exhausted += st.Exhausted
		}
		s.Endpoints(u.Name(), ready)
		s.UpstreamPool(u.Name(), sum)
		s.Retries(u.Name(), u.Retried())
		if state, opened, ok := u.Breaker(); ok {
			s.Breaker(u.Name(), int(state), opened)
		}
	})
	for i := range g.config.Routes {
		if u := g.plans[i+1].upgrades; u != nil {
			s.Upgrades(g.config.Routes[i].Name, u.open.Load(), u.total.Load())
		}
	}
	if g.server != nil {
		s.Clients(g.server.Connections(), g.server.InFlight())
		s.Handshakes(g.server.Handshakes())
	}
	g.cuts.collect(s)
	g.outbound.collect(s)
	s.LogDropped(g.access.Dropped())
	if g.source != nil {
		g.source.Collect(s)
	}
}

// metricsPlan begins the series of a generation.
func metricsPlan(m *metrics.Metrics, g *Generation) (*metrics.Plan, error) {
	routes := make([]string, 0, len(g.config.Routes))
	for i := range g.config.Routes {
		routes = append(routes, g.config.Routes[i].Name)
	}
	return m.Plan(metrics.Generation{Routes: routes, Upstreams: g.names, Labels: g.config.Metrics.Labels})
}
