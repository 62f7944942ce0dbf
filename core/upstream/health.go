package upstream

import (
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// HealthOptions rule passive health: what requests tell about an endpoint.
type HealthOptions struct {
	Failures int           // consecutive failures that put an endpoint out
	Out      time.Duration // how long it stays out before it is probed
	Probes   int           // requests at once that try an endpoint again
}

type healthState uint8

const (
	healthy  healthState = iota
	halfOpen             // may be probed
	out
)

// health is one endpoint's. An endpoint that is out carries the instant from which it may be probed; a probe that succeeds brings it back,
// one that fails puts it out again, and one that tells nothing leaves it as it was. Changes while out are guarded by Upstream.mu.
type health struct {
	failures atomic.Int32
	until    atomic.Int64 // core.Instant from which probes are let through; 0 is healthy
	probes   atomic.Int32 // under way
}

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

func (h *health) admits(now core.Instant, probes int) bool {
	switch h.state(now) {
	case healthy:
		return true
	case halfOpen:
		return int(h.probes.Load()) < probes
	}
	return false
}

// admit takes a probe's place when the endpoint is half-open and tells whether it did.
func (h *health) admit(now core.Instant) bool {
	if h.state(now) != halfOpen {
		return false
	}
	h.probes.Add(1)
	return true
}

// Succeeded ends a try that was answered well: any status below 500.
func (a Attempt) Succeeded() {
	h := &a.up.live[a.Endpoint.Index].health
	if a.probe {
		a.up.mu.Lock()
		h.probes.Add(-1)
		h.until.Store(0)
		a.up.mu.Unlock()
	}
	if h.failures.Load() != 0 {
		h.failures.Store(0)
	}
}

// Failed ends a try that speaks against the endpoint: no connection, a time limit, nonsense, or a 5xx. The last ready endpoint of an
// upstream stays in, since nobody else could do better.
func (a Attempt) Failed() {
	u := a.up
	h := &u.live[a.Endpoint.Index].health
	few := h.failures.Add(1) < int32(u.opts.Health.Failures)
	if few && !a.probe {
		return
	}
	now := core.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.probe {
		h.probes.Add(-1)
	}
	if h.healthy() && (few || !u.othersReady(a.Endpoint, now)) { // also when another probe has brought it back meanwhile
		return
	}
	h.until.Store(int64(now.Add(u.opts.Health.Out)))
	h.failures.Store(0)
}

// Ended ends a try that tells nothing about the endpoint: the client left, or a connection that had rested was found closed.
func (a Attempt) Ended() {
	if a.probe {
		a.up.live[a.Endpoint.Index].health.probes.Add(-1)
	}
}

func (u *Upstream) othersReady(e *core.Endpoint, now core.Instant) bool {
	for _, o := range u.active {
		if o != e && u.live[o.Index].health.state(now) == healthy {
			return true
		}
	}
	return false
}
