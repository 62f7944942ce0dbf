package upstream

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// HealthOptions rule passive health: what requests tell about an endpoint.
type HealthOptions struct {
	Failures int           // consecutive failures that put an endpoint out
	Out      time.Duration // how long it stays out before it is probed, and how long probes that last keep others from it
	Probes   int           // requests at once that try an endpoint again
}

type healthState uint8

const (
	healthy  healthState = iota
	halfOpen             // may be probed
	out
)

// health is one endpoint's. An endpoint that is out carries the instant from which it may be probed; a probe that succeeds brings it back,
// one that fails puts it out again, and one that tells nothing leaves it as it was. One that checks have put out comes back by checks alone.
// Changes while out are guarded by Upstream.mu.
type health struct {
	failures atomic.Int32
	until    atomic.Int64 // core.Instant from which probes are let through; 0 is healthy, unhealthy is out by checks
	probes   atomic.Int32 // under way
	tried    atomic.Int64 // core.Instant at which the latest of them was let through
}

// unhealthy is the instant that never comes.
const unhealthy = math.MaxInt64

func (h *health) healthy() bool { return h.until.Load() == 0 }

func (h *health) state(now core.Instant) healthState {
	switch until := core.Instant(h.until.Load()); {
	case until == 0:
		return healthy
	case now >= until:
		return halfOpen
	}
	return out
}

// admits tells whether the endpoint may be asked now. A probe that lasts, such as an upload whose client is slow, does not keep others from finding
// out: one more is let through each time that Out has passed.
func (h *health) admits(now core.Instant, o *HealthOptions) bool {
	switch h.state(now) {
	case healthy:
		return true
	case halfOpen:
		return int(h.probes.Load()) < o.Probes || now.Sub(core.Instant(h.tried.Load())) >= o.Out
	}
	return false
}

// admit takes a probe's place when the endpoint is half-open and tells whether it did.
func (h *health) admit(now core.Instant) bool {
	if h.state(now) != halfOpen {
		return false
	}
	h.probes.Add(1)
	h.tried.Store(int64(now))
	return true
}

// dismissChecked puts an endpoint out because of checks and tells whether it was not out by them. It is called with Upstream.mu held.
func (h *health) dismissChecked() bool { return h.until.Swap(unhealthy) != unhealthy }

// admitChecked lets an endpoint in that checks have put out, and tells whether they had. It is called with Upstream.mu held.
func (h *health) admitChecked() bool {
	if h.until.Load() != unhealthy {
		return false
	}
	h.failures.Store(0)
	h.until.Store(0)
	return true
}

// dismissed tells whether checks have put the endpoint out.
func (h *health) dismissed() bool { return h.until.Load() == unhealthy }

func (u *Upstream) othersReady(e *core.Endpoint, now core.Instant) bool {
	for _, o := range u.active {
		if o != e && u.live[o.Index].health.state(now) == healthy {
			return true
		}
	}
	return false
}
