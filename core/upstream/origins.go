package upstream

import (
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// OriginOptions are what all origins have in common.
type OriginOptions struct {
	Limits core.Limits
	Pool   PoolOptions // for each origin
	Max    int         // origins whose connections are kept
	Guard  Guard
}

// Origins are upstreams that no configuration names: one endpoint each, for whoever asks a URL. Their connections are kept like those of
// other upstreams; of many origins those are forgotten that were asked longest ago. It is safe for concurrent use.
type Origins struct {
	mu    sync.Mutex
	opts  OriginOptions
	known map[string]*origin // by URL without a path
}

type origin struct {
	up   *Upstream
	used core.Instant
}

// originRest is how long an origin is kept that nobody asks.
const originRest = 2 * time.Minute

// NewOrigins knows none yet.
func NewOrigins(o OriginOptions) *Origins {
	return &Origins{opts: o, known: map[string]*origin{}}
}

// Get finds or makes the upstream for a scheme, "http" or "https", and an authority without user information.
func (o *Origins) Get(scheme, authority string) (*Upstream, error) {
	url := scheme + "://" + authority
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.known[url]; known != nil {
		known.used = core.Now()
		return known.up, nil
	}
	up, err := New(Options{
		Name: url, Balance: "round_robin", Host: "upstream", Endpoints: []Target{{URL: url, Weight: 1}}, Limits: o.opts.Limits, Pool: o.opts.Pool,
		Health: HealthOptions{Failures: 1 << 30, Out: time.Second, Probes: 1}, Guard: o.opts.Guard,
	}, nil)
	if err != nil {
		return nil, err
	}
	if len(o.known) >= o.opts.Max {
		o.forgetOldest()
	}
	o.known[url] = &origin{up, core.Now()}
	return up, nil
}

// forgetOldest is called with o.mu held.
func (o *Origins) forgetOldest() {
	oldest := ""
	for url, known := range o.known {
		if oldest == "" || known.used < o.known[oldest].used {
			oldest = url
		}
	}
	o.forget(oldest)
}

// forget is called with o.mu held. Connections in use close when they come back.
func (o *Origins) forget(url string) {
	if known := o.known[url]; known != nil {
		known.up.Retire(nil)
		delete(o.known, url)
	}
}

// Sweep closes connections that have rested too long, and forgets origins that nobody asks any more.
func (o *Origins) Sweep(now core.Instant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for url, known := range o.known {
		if now.Sub(known.used) > originRest {
			o.forget(url)
			continue
		}
		known.up.Sweep(now)
	}
}

// Configure makes other options hold. Connections that were opened under the old ones are closed.
func (o *Origins) Configure(opts OriginOptions) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opts = opts
	for url := range o.known {
		o.forget(url)
	}
}

// Close forgets all of them.
func (o *Origins) Close() { o.Configure(OriginOptions{}) }
