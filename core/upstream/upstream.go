// Package upstream is a service and its health: the endpoints that stand for it, who of them is ready, and the connections to each. It answers
// one question: give me a connection to a good one. What goes over the connection is the proxy's matter.
//
// An [Upstream] belongs to one generation. What lives (connections, health, balancer position) is taken over by the next generation's
// Upstream for every endpoint that stays.
package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/balance"
)

// Options describe an upstream. New fills in no defaults: the configuration has done so.
type Options struct {
	Name      string
	Balance   string        // name of the algorithm
	SlowStart time.Duration // in which an endpoint that is new or back comes to its share; 0: at once
	Host      string        // "upstream", "client" or a fixed name
	Protocol  string        // H1, H2 or H2C; "" is H1
	TLS       TLSOptions
	Proxy     int // version of the PROXY header that connections begin with: 1 or 2; 0: none
	Endpoints []Target
	Limits    core.Limits
	Pool      PoolOptions // for each endpoint
	Upgrades  int         // most connections that have switched protocols; 0: any number
	Health    HealthOptions
	Check     CheckOptions
	Sticky    StickyOptions
	Retry     RetryOptions
	Breaker   BreakerOptions
	Guard     Guard // of connections over HTTP/1.1; nil: any address

	Opened func(why string) // called when the circuit breaker was opened; nil: nobody is told
	Closed func()           // and when it was closed

	Out  func(*core.Endpoint) // called when requests have put an endpoint out that was in; nil: nobody is told
	Back func(*core.Endpoint) // and when one has brought it back
}

// Target is one endpoint as configured.
type Target struct {
	URL    string // http://host[:port], https://host[:port] or unix:/path
	Weight int    // 0 is drained
}

// ErrNoneReady means that no endpoint may be asked now.
var ErrNoneReady = errors.New("no endpoint is ready")

// Upstream is a named set of endpoints. It is safe for concurrent use.
type Upstream struct {
	opts      Options
	endpoints []*core.Endpoint
	active    []*core.Endpoint // those that are not drained
	live      []*live          // by Endpoint.Index
	fresh     []*live          // those that begin to take requests with this generation
	balancer  balance.Balancer
	metered   balance.Metered // the same when it goes by loads, else nil
	sticky
	upgrades *upgrades // the same for all generations
	retries  *retries  // likewise
	breaker  *breaker  // the same for all generations in a row that have one

	mu *sync.Mutex // guards the choice among endpoints while some are out; the same for all generations
}

// live is what an endpoint keeps over reloads.
type live struct {
	pool    *Pool
	streams *Streams // nil for HTTP/1.1
	health  health
	load    *balance.Load
	rise    rise
	checks  checks
}

// New makes an upstream. prev, when not nil, is the one of that name in the generation before: endpoints that stay keep their
// connections and their health, and the balancer its position when nothing about the choice has changed.
func New(o Options, prev *Upstream) (*Upstream, error) {
	o.Endpoints = slices.Clone(o.Endpoints)
	u := &Upstream{opts: o, mu: new(sync.Mutex), upgrades: new(upgrades), retries: newRetries(), breaker: new(breaker)}
	if prev != nil {
		u.mu, u.upgrades, u.retries = prev.mu, prev.upgrades, prev.retries
		if o.Breaker.on() && prev.opts.Breaker.on() {
			u.breaker = prev.breaker
		}
	}
	for i, t := range o.Endpoints {
		e, err := newEndpoint(o.Name, t, i)
		if err != nil {
			return nil, err
		}
		u.endpoints = append(u.endpoints, e)
		was := u.known(prev, e)
		l, err := u.adopt(prev, was, e)
		if err != nil {
			return nil, err
		}
		if u.live = append(u.live, l); e.Weight == 0 {
			continue
		}
		if u.active = append(u.active, e); prev != nil && !prev.asks(was) {
			u.fresh = append(u.fresh, l)
		}
	}
	if err := u.chooseBalancer(prev); err != nil {
		return nil, err
	}
	u.metered, _ = u.balancer.(balance.Metered)
	u.stick()
	return u, nil
}

// chooseBalancer takes over the balancer of prev, with its position, when it chooses among the same endpoints.
func (u *Upstream) chooseBalancer(prev *Upstream) (err error) {
	if prev != nil && prev.opts.Balance == u.opts.Balance && slices.Equal(prev.opts.Endpoints, u.opts.Endpoints) {
		u.balancer = prev.balancer
		return nil
	}
	loads := make([]*balance.Load, len(u.live))
	for i, l := range u.live {
		loads[i] = l.load
	}
	u.balancer, err = balance.New(u.opts.Balance, loads)
	return err
}

func newEndpoint(upstream string, t Target, index int) (*core.Endpoint, error) {
	if strings.HasPrefix(t.URL, "unix:/") {
		return &core.Endpoint{Upstream: upstream, Scheme: "http", Address: t.URL, Authority: "localhost", Weight: t.Weight, Index: index}, nil
	}
	parsed, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	port, known := map[string]string{"http": "80", "https": "443"}[parsed.Scheme]
	if !known || parsed.Host == "" || parsed.Path != "" && parsed.Path != "/" {
		return nil, fmt.Errorf("endpoint %q: want http://host:port or https://host:port", t.URL)
	}
	e := &core.Endpoint{Upstream: upstream, Scheme: parsed.Scheme, Authority: parsed.Host, Weight: t.Weight, Index: index}
	e.Address = net.JoinHostPort(parsed.Hostname(), port)
	if own := parsed.Port(); own == port {
		e.Authority = parsed.Host[:len(parsed.Host)-len(":"+port)]
	} else if own != "" {
		e.Address = net.JoinHostPort(parsed.Hostname(), own)
	}
	return e, nil
}

// adopt goes on with old, what prev knows of the same address, or begins anew.
func (u *Upstream) adopt(prev *Upstream, old *live, e *core.Endpoint) (*live, error) {
	load := new(balance.Load)
	if old != nil {
		if prev.opts.Protocol == u.opts.Protocol && prev.opts.Proxy == u.opts.Proxy && prev.opts.TLS.equal(&u.opts.TLS) {
			return old, nil
		}
		load = old.load // requests of before are under way there all the same
	}
	l := &live{pool: newPool(e.Address, u.opts.Pool), load: load}
	l.pool.guard = u.opts.Guard
	if e.Scheme == "https" {
		var err error
		if l.pool.tls, err = u.opts.TLS.config(e.Address); err != nil {
			return nil, err
		}
	}
	if u.opts.Protocol == H2 || u.opts.Protocol == H2C {
		l.streams = newStreams(e.Address, l.pool.tls, u.opts.Pool)
	}
	return l, nil
}

// known finds the same address among the endpoints of prev, which may be nil.
func (u *Upstream) known(prev *Upstream, e *core.Endpoint) *live {
	if prev == nil {
		return nil
	}
	for i, old := range prev.endpoints {
		if old.Address == e.Address && old.Scheme == e.Scheme && !slices.Contains(u.live, prev.live[i]) {
			return prev.live[i]
		}
	}
	return nil
}

// asks tells whether l is one of the upstream's endpoints that are not drained.
func (u *Upstream) asks(l *live) bool {
	return slices.ContainsFunc(u.active, func(e *core.Endpoint) bool { return u.live[e.Index] == l })
}

// Commit makes the upstream's settings hold for what it took over from the generation before. The generation calls it when it goes live.
func (u *Upstream) Commit() {
	now := core.Now()
	for _, l := range u.fresh {
		l.rise.begin(now)
	}
	for _, l := range u.live {
		l.pool.apply(u.opts.Pool)
		if l.streams != nil {
			l.streams.apply(u.opts.Pool)
		}
	}
}

// Retire closes the idle connections of endpoints that next, which may be nil, has not taken over, and ends their checks; connections in use
// close when they come back.
func (u *Upstream) Retire(next *Upstream) {
	for _, l := range u.live {
		if next == nil || !slices.Contains(next.live, l) {
			l.checks.end()
			l.pool.Close()
			if l.streams != nil {
				l.streams.Close()
			}
		}
	}
}

// Sweep closes idle connections that have ended or rested too long. Somebody calls it every few seconds.
func (u *Upstream) Sweep(now core.Instant) {
	for _, l := range u.live {
		l.pool.sweep(now)
	}
}

// Name implements core.Upstream.
func (u *Upstream) Name() string { return u.opts.Name }

// Endpoints implements core.Upstream.
func (u *Upstream) Endpoints() []*core.Endpoint { return u.endpoints }

// Host is the policy for the Host that goes out: "upstream", "client" or a fixed name.
func (u *Upstream) Host() string { return u.opts.Host }

// Proxy is the version of the PROXY header that a connection to this upstream begins with, 0 for none. Such a connection is opened by
// Pool.Open.
func (u *Upstream) Proxy() int { return u.opts.Proxy }

// Limits are the upstream's time limits.
func (u *Upstream) Limits() core.Limits { return u.opts.Limits }

// Pool is the connections to an endpoint of this upstream.
func (u *Upstream) Pool(e *core.Endpoint) *Pool { return u.live[e.Index].pool }

// Stats are the counters of the connections to an endpoint of this upstream, whatever they speak.
func (u *Upstream) Stats(e *core.Endpoint) PoolStats {
	if l := u.live[e.Index]; l.streams != nil {
		return l.streams.Stats()
	}
	return u.Pool(e).Stats()
}

// Ready implements core.Upstream.
func (u *Upstream) Ready() int {
	if u.breakerOpen() {
		return 0
	}
	n, now := 0, core.Now()
	for _, e := range u.active {
		if u.live[e.Index].health.state(now) != out {
			n++
		}
	}
	if n == 0 {
		return len(u.undismissed(nil))
	}
	return n
}

// IsReady tells whether an endpoint of this upstream takes requests.
func (u *Upstream) IsReady(e *core.Endpoint) bool {
	return e.Weight > 0 && u.live[e.Index].health.state(core.Now()) != out
}

// Standing tells in a word how an endpoint stands: "ready", "out" (requests have failed), "unhealthy" (checks have failed), "drained" (its weight
// is 0).
func (u *Upstream) Standing(e *core.Endpoint) string {
	switch {
	case e.Weight == 0:
		return "drained"
	case u.live[e.Index].health.dismissed():
		return "unhealthy"
	case u.IsReady(e):
		return "ready"
	}
	return "out"
}

// Load is what an endpoint of this upstream has to carry; nil unless the upstream's balancer goes by it.
func (u *Upstream) Load(e *core.Endpoint) *balance.Load {
	if u.metered == nil {
		return nil
	}
	return u.live[e.Index].load
}

// State implements core.Upstream.
func (u *Upstream) State(e *core.Endpoint) core.EndpointState {
	stats := u.Stats(e)
	return core.EndpointState{Ready: u.IsReady(e), Health: u.Standing(e), InFlight: stats.Open - stats.Idle}
}

// idleLimit is how long a connection may rest before it is closed.
const idleLimit = 60 * time.Second
