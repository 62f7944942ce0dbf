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
	Balance   string // name of the algorithm
	Host      string // "upstream", "client" or a fixed name
	Protocol  string // H1, H2 or H2C; "" is H1
	TLS       TLSOptions
	Proxy     int // version of the PROXY header that connections begin with: 1 or 2; 0: none
	Endpoints []Target
	Limits    core.Limits
	Pool      PoolOptions // for each endpoint
	Upgrades  int         // most connections that have switched protocols; 0: any number
	Health    HealthOptions
	Retry     RetryOptions
	Guard     Guard // of connections over HTTP/1.1; nil: any address
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
	balancer  balance.Balancer
	upgrades  *upgrades // the same for all generations
	retries   *retries  // likewise

	mu *sync.Mutex // guards the choice among endpoints while some are out; the same for all generations
}

// live is what an endpoint keeps over reloads.
type live struct {
	pool    *Pool
	streams *Streams // nil for HTTP/1.1
	health  health
}

// New makes an upstream. prev, when not nil, is the one of that name in the generation before: endpoints that stay keep their
// connections and their health, and the balancer its position when nothing about the choice has changed.
func New(o Options, prev *Upstream) (*Upstream, error) {
	o.Endpoints = slices.Clone(o.Endpoints)
	u := &Upstream{opts: o, mu: new(sync.Mutex), upgrades: new(upgrades), retries: newRetries()}
	if prev != nil {
		u.mu, u.upgrades, u.retries = prev.mu, prev.upgrades, prev.retries
	}
	for i, t := range o.Endpoints {
		e, err := newEndpoint(o.Name, t, i)
		if err != nil {
			return nil, err
		}
		u.endpoints = append(u.endpoints, e)
		if e.Weight > 0 {
			u.active = append(u.active, e)
		}
		l, err := u.adopt(prev, e)
		if err != nil {
			return nil, err
		}
		u.live = append(u.live, l)
	}
	if prev != nil && prev.opts.Balance == o.Balance && slices.Equal(prev.opts.Endpoints, o.Endpoints) {
		u.balancer = prev.balancer
		return u, nil
	}
	var err error
	u.balancer, err = balance.New(o.Balance, len(u.endpoints))
	return u, err
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

// adopt finds what prev knows of the same address, or begins anew.
func (u *Upstream) adopt(prev *Upstream, e *core.Endpoint) (*live, error) {
	if prev != nil && prev.opts.Protocol == u.opts.Protocol && prev.opts.Proxy == u.opts.Proxy && prev.opts.TLS.equal(&u.opts.TLS) {
		for i, old := range prev.endpoints {
			if old.Address == e.Address && old.Scheme == e.Scheme && !slices.Contains(u.live, prev.live[i]) {
				return prev.live[i], nil
			}
		}
	}
	l := &live{pool: newPool(e.Address, u.opts.Pool)}
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

// Commit makes the upstream's settings hold for what it took over from the generation before. The generation calls it when it goes live.
func (u *Upstream) Commit() {
	for _, l := range u.live {
		l.pool.apply(u.opts.Pool)
		if l.streams != nil {
			l.streams.apply(u.opts.Pool)
		}
	}
}

// Retire closes the idle connections of endpoints that next, which may be nil, has not taken over; those in use close when they come
// back.
func (u *Upstream) Retire(next *Upstream) {
	for _, l := range u.live {
		if next == nil || !slices.Contains(next.live, l) {
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
	n, now := 0, core.Now()
	for _, e := range u.active {
		if u.live[e.Index].health.state(now) != out {
			n++
		}
	}
	if n == 0 {
		return len(u.active)
	}
	return n
}

// IsReady tells whether an endpoint of this upstream takes requests.
func (u *Upstream) IsReady(e *core.Endpoint) bool {
	return e.Weight > 0 && u.live[e.Index].health.state(core.Now()) != out
}

// State implements core.Upstream.
func (u *Upstream) State(e *core.Endpoint) core.EndpointState {
	stats := u.Stats(e)
	return core.EndpointState{Ready: u.IsReady(e), InFlight: stats.Open - stats.Idle}
}

// Pick implements core.Upstream. It chooses without promising anything: Begin settles whether the endpoint may be asked.
func (u *Upstream) Pick(_ *core.Exchange, key string) (*core.Endpoint, error) {
	e, _, err := u.choose(key, nil, false)
	return e, err
}

// Attempt is one try at an endpoint. Exactly one of its endings must be called.
type Attempt struct {
	Endpoint *core.Endpoint
	up       *Upstream
	probe    bool
}

// Begin chooses an endpoint for a try, none of those that have been tried in vain unless there is no other; then the last of them last.
func (u *Upstream) Begin(key string, tried []*core.Endpoint) (Attempt, error) {
	e, probe, err := u.choose(key, tried, true)
	if err != nil {
		return Attempt{}, err
	}
	return Attempt{Endpoint: e, up: u, probe: probe}, nil
}

// BeginAt is Begin for an endpoint that a script has chosen.
func (u *Upstream) BeginAt(e *core.Endpoint) (Attempt, error) {
	if e.Index >= len(u.endpoints) || u.endpoints[e.Index] != e {
		return Attempt{}, fmt.Errorf("endpoint %s is not one of upstream %s", e, u.opts.Name)
	}
	a := Attempt{Endpoint: e, up: u}
	if h := &u.live[e.Index].health; !h.healthy() {
		u.mu.Lock()
		defer u.mu.Unlock()
		now := core.Now()
		a.probe = h.admits(now, u.opts.Health.Probes) && h.admit(now)
	}
	return a, nil
}

// choose asks the balancer among the endpoints that are ready. With take, a probe's place is taken where the choice is half-open.
func (u *Upstream) choose(key string, tried []*core.Endpoint, take bool) (e *core.Endpoint, probe bool, err error) {
	now := core.Now()
	if len(tried) == 0 && u.allHealthy() {
		if len(u.active) == 0 {
			return nil, false, ErrNoneReady
		}
		return u.balancer.Pick(u.active, key), false, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var room [16]*core.Endpoint
	ready := u.admitted(room[:0], tried, now)
	if len(ready) == 0 && len(tried) > 1 {
		ready = u.admitted(ready, tried[len(tried)-1:], now)
	}
	if len(ready) == 0 && len(tried) > 0 {
		ready = u.admitted(ready, nil, now)
	}
	if len(ready) == 0 { // a reload has left only endpoints that were out: better one of them than nobody
		ready = append(ready, u.active...)
	}
	switch len(ready) {
	case 0:
		return nil, false, ErrNoneReady
	case 1: // no choice, and no turn: else a second try would take the next request's, which then began where this one failed
		e = ready[0]
	default:
		e = u.balancer.Pick(ready, key)
	}
	return e, take && u.live[e.Index].health.admit(now), nil
}

// admitted appends the endpoints that may be asked now, but for those that were tried.
func (u *Upstream) admitted(ready, tried []*core.Endpoint, now core.Instant) []*core.Endpoint {
	for _, e := range u.active {
		if !slices.Contains(tried, e) && u.live[e.Index].health.admits(now, u.opts.Health.Probes) {
			ready = append(ready, e)
		}
	}
	return ready
}

func (u *Upstream) allHealthy() bool {
	for _, e := range u.active {
		if !u.live[e.Index].health.healthy() {
			return false
		}
	}
	return true
}

// idleLimit is how long a connection may rest before it is closed.
const idleLimit = 60 * time.Second
