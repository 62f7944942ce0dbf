package upstream

import (
	"fmt"
	"slices"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/balance"
)

// Attempt is one try at an endpoint. Exactly one of its endings (Succeeded, Failed, Ended) is called, and Leave once nothing of it is under
// way any more.
type Attempt struct {
	Endpoint *core.Endpoint
	up       *Upstream
	probe    bool
	pass     pass // of the circuit breaker

	load   *balance.Load // nil unless the balancer goes by it
	began  core.Instant
	client time.Duration // of the time since then: what the client took
}

// Begin chooses an endpoint for a try, none of those that have been tried in vain unless there is no other; then the last of them last.
func (u *Upstream) Begin(key string, tried []*core.Endpoint) (a Attempt, err error) {
	if a.pass, err = u.admit(); err != nil {
		return Attempt{}, err
	}
	a.up = u
	if a.Endpoint, a.probe, err = u.choose(key, tried, true); err != nil {
		u.breaker.ended(a.pass)
		return Attempt{}, err
	}
	if u.metered != nil { // the choice has counted it
		a.meter(u.live[a.Endpoint.Index].load)
	}
	return a, nil
}

// BeginKept is Begin for a client that is to stay at an endpoint, if that may be asked and has not been tried in vain; kept may be nil.
func (u *Upstream) BeginKept(kept *core.Endpoint, key string, tried []*core.Endpoint) (Attempt, error) {
	if kept != nil && !slices.Contains(tried, kept) && u.live[kept.Index].health.admits(core.Now(), &u.opts.Health) {
		return u.BeginAt(kept)
	}
	return u.Begin(key, tried)
}

// BeginAt is Begin for an endpoint that a script has chosen.
func (u *Upstream) BeginAt(e *core.Endpoint) (Attempt, error) {
	if e.Index >= len(u.endpoints) || u.endpoints[e.Index] != e {
		return Attempt{}, fmt.Errorf("endpoint %s is not one of upstream %s", e, u.opts.Name)
	}
	p, err := u.admit()
	if err != nil {
		return Attempt{}, err
	}
	a := Attempt{Endpoint: e, up: u, pass: p}
	l := u.live[e.Index]
	if !l.health.healthy() {
		u.mu.Lock()
		defer u.mu.Unlock()
		now := core.Now()
		a.probe = l.health.admits(now, &u.opts.Health) && l.health.admit(now)
	}
	if u.metered != nil {
		l.load.Enter()
		a.meter(l.load)
	}
	return a, nil
}

// admit asks the circuit breaker.
func (u *Upstream) admit() (pass, error) {
	if !u.opts.Breaker.on() {
		return pass{}, nil
	}
	return u.breaker.admit(&u.opts.Breaker)
}

// Succeeded ends a try that was answered well: any status below 500.
func (a Attempt) Succeeded() {
	if a.load != nil {
		a.load.Answered(a.took(), core.Now())
	}
	if o := &a.up.opts; o.Breaker.on() && a.up.breaker.succeeded(&o.Breaker, a.pass) && o.Closed != nil {
		o.Closed()
	}
	h := &a.up.live[a.Endpoint.Index].health
	if a.probe && a.broughtBack() && a.up.opts.Back != nil {
		a.up.opts.Back(a.Endpoint)
	}
	if h.failures.Load() != 0 {
		h.failures.Store(0)
	}
}

// Failed ends a try that speaks against the endpoint: no connection, a time limit, nonsense, or a 5xx. The last ready endpoint of an
// upstream stays in, since nobody else could do better.
func (a Attempt) Failed() {
	u := a.up
	if a.load != nil {
		a.load.Failed(a.took(), core.Now())
	}
	if o := &u.opts; o.Breaker.on() {
		if why := u.breaker.failed(&o.Breaker, a.pass); why != "" && o.Opened != nil {
			o.Opened(why)
		}
	}
	h := &u.live[a.Endpoint.Index].health
	few := h.failures.Add(1) < int32(u.opts.Health.Failures)
	if few && !a.probe {
		return
	}
	if a.putOut(few) && u.opts.Out != nil {
		u.opts.Out(a.Endpoint)
	}
}

// broughtBack ends a probe that was answered well, and tells whether that brought its endpoint back.
func (a Attempt) broughtBack() bool {
	l := a.up.live[a.Endpoint.Index]
	a.up.mu.Lock()
	defer a.up.mu.Unlock()
	if l.health.probes.Add(-1); l.health.healthy() || l.health.dismissed() {
		return false
	}
	l.rise.begin(core.Now())
	l.health.until.Store(0)
	return true
}

// putOut draws the conclusion from a failure, and tells whether it put an endpoint out that was in.
func (a Attempt) putOut(few bool) bool {
	u := a.up
	h := &u.live[a.Endpoint.Index].health
	now := core.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.probe {
		h.probes.Add(-1)
	}
	in := h.healthy()
	switch {
	case h.dismissed():
		return false
	case in && (few || !u.othersReady(a.Endpoint, now)): // also when another probe has brought it back meanwhile
		return false
	}
	h.until.Store(int64(now.Add(u.opts.Health.Out)))
	h.failures.Store(0)
	return in
}

// Ended ends a try that tells nothing about the endpoint: the client left, or a connection that had rested was found closed.
func (a Attempt) Ended() {
	if a.load != nil {
		a.load.Awaited(a.took(), core.Now())
	}
	a.up.breaker.ended(a.pass)
	if a.probe {
		a.up.live[a.Endpoint.Index].health.probes.Add(-1)
	}
}

// meter makes the try one that its endpoint's load, which has counted it, hears of.
func (a *Attempt) meter(l *balance.Load) { a.load, a.began = l, core.Now() }

// Metered tells whether it matters how long the try takes.
func (a *Attempt) Metered() bool { return a.load != nil }

// Excuse takes what the client needed to send its request off the time that the try took.
func (a *Attempt) Excuse(took time.Duration) { a.client = took }

func (a *Attempt) took() time.Duration { return max(core.Now().Sub(a.began)-a.client, 0) }

// Leave says that nothing of the try is under way at the endpoint any more. Later calls do nothing.
func (a *Attempt) Leave() {
	if a.load != nil {
		a.load.Leave()
		a.load = nil
	}
}
