package gateway

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/proxy"
)

// upgradeSeries counts the connections of one route that have switched protocols. It lives on over reloads with its route.
type upgradeSeries struct {
	open  atomic.Int64
	total atomic.Uint64
}

// adoptUpgrades gives the routes that allow upgrades their counters: those of prev, which may be nil, where a route stays.
func (g *Generation) adoptUpgrades(prev *Generation) {
	known := map[string]*upgradeSeries{}
	if prev != nil {
		for i := range prev.config.Routes {
			known[prev.config.Routes[i].Name] = prev.plans[i+1].upgrades
		}
	}
	for i := range g.config.Routes {
		if r := &g.config.Routes[i]; len(r.Upgrades) > 0 {
			if g.plans[i+1].upgrades = known[r.Name]; known[r.Name] == nil {
				g.plans[i+1].upgrades = new(upgradeSeries)
			}
		}
	}
}

// tunnels are what stays open for as long as its two ends like: connections that have switched protocols, and streams of events. They outlive
// the generation that they began on as long as their route and endpoint are left alone.
type tunnels struct {
	mu    sync.Mutex
	open  map[*tunnel]struct{}
	endAt time.Time // when the gateway shuts down: the time by which all are to end
}

type tunnel struct {
	drain    func()      // ends it in good order
	route    *conf.Route // as it was when it began
	endpoint *core.Endpoint
	timer    *time.Timer // set once the tunnel is to end
	endAt    time.Time   // when it will
}

// carrying is the rest of an exchange that has been answered with 101: its tunnel, until that ends, and the end.
func (g *Gateway) carrying(x *core.Exchange, pass *plan, leg *proxy.Leg, opened *http1.Tunnel, asked string) func() {
	t := g.enter(x, opened.Drain)
	pass.upgrades.total.Add(1)
	pass.upgrades.open.Add(1)
	return func() {
		defer func() {
			if leg != nil { // a panic, as in Serve
				leg.Abandon()
			}
		}()
		x.Err = opened.Run()
		pass.upgrades.open.Add(-1)
		g.leave(t)
		up, down := opened.Passed()
		x.Request.Body.Count(up)
		x.Response.BodySent = down
		g.conclude(x, pass, leg)
		leg = nil
		pass.count(x, asked)
	}
}

// unopened is what is wrong with an answer of 2xx to an extended CONNECT: the client would take it for the switch that it asked for (RFC 8441
// section 5), and over HTTP/1.1 for a handshake that failed.
func unopened(x *core.Exchange) error {
	w := &x.Response
	switch {
	case !x.Request.Extended || w.Status < 200 || w.Status > 299:
		return nil
	case w.Source == core.FromUpstream:
		return core.Fail(502, "no websocket was opened", fmt.Errorf("upstream answered a WebSocket's handshake with %d", w.Status))
	}
	return core.Fail(403, "no websocket was opened", nil)
}

func (g *Gateway) enter(x *core.Exchange, drain func()) *tunnel {
	gen := x.Generation.(*Generation)
	t := &tunnel{drain: drain, route: &gen.config.Routes[x.Route.ID-1], endpoint: x.Endpoint}
	s := &g.tunnels
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*tunnel]struct{}{}
	}
	s.open[t] = struct{}{}
	if !s.endAt.IsZero() {
		t.end(time.Until(s.endAt))
	} else if now := g.current.Load(); now != gen && !t.stays(now) {
		t.end(now.config.HTTP.Drain)
	}
	return t
}

func (g *Gateway) leave(t *tunnel) {
	s := &g.tunnels
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, t)
	if t.timer != nil {
		t.timer.Stop()
	}
}

// reloaded begins to end the tunnels whose route or endpoint gen does not have any more.
func (s *tunnels) reloaded(gen *Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.open {
		if !t.stays(gen) {
			t.end(gen.config.HTTP.Drain)
		}
	}
}

// shutdown begins to end all tunnels, early enough that the close of each can be answered within drain.
func (s *tunnels) shutdown(drain time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := drain - min(drain/4, 2*time.Second)
	s.endAt = time.Now().Add(left)
	for t := range s.open {
		t.end(left)
	}
}

// end lets the tunnel go on for a while; one that is to end sooner does. The caller holds the lock.
func (t *tunnel) end(after time.Duration) {
	at := time.Now().Add(after)
	switch {
	case t.timer == nil:
		t.timer, t.endAt = time.AfterFunc(after, t.drain), at
	case at.Before(t.endAt):
		t.timer.Reset(after)
		t.endAt = at
	}
}

// stays tells whether gen leaves the tunnel's route and endpoint alone. What holds only until a connection has switched, its limits, does
// not count.
func (t *tunnel) stays(gen *Generation) bool {
	for i := range gen.config.Routes {
		if r := &gen.config.Routes[i]; r.Name == t.route.Name {
			was, is := *t.route, *r
			was.Timeouts, was.HTTP, is.Timeouts, is.HTTP = conf.Timeouts{}, conf.RouteHTTP{}, conf.Timeouts{}, conf.RouteHTTP{}
			return was.Equal(&is) && gen.hasEndpoint(t.endpoint)
		}
	}
	return false
}

// hasEndpoint tells whether an endpoint of another generation is one of this one's, under the same upstream.
func (g *Generation) hasEndpoint(e *core.Endpoint) bool {
	up := g.upstreams[e.Upstream]
	if up == nil {
		return false
	}
	for _, own := range up.Endpoints() {
		if own.Scheme == e.Scheme && own.Address == e.Address {
			return true
		}
	}
	return false
}
