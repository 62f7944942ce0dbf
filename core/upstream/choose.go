package upstream

import (
	"slices"

	"github.com/moongate/moongate/core"
)

// Pick implements core.Upstream. It chooses without promising anything: Begin settles whether the endpoint may be asked.
func (u *Upstream) Pick(x *core.Exchange, key string) (*core.Endpoint, error) {
	if kept := u.Kept(x); kept != nil && u.IsReady(kept) {
		return kept, nil
	}
	e, _, err := u.choose(u.key(x, key), nil, false)
	return e, err
}

// choose asks the balancer among the endpoints that are ready. With take, a probe's place is taken where the choice is half-open.
func (u *Upstream) choose(key string, tried []*core.Endpoint, take bool) (e *core.Endpoint, probe bool, err error) {
	if len(tried) == 0 && u.allHealthy() && !u.rises() {
		if len(u.active) == 0 {
			return nil, false, ErrNoneReady
		}
		return u.ask(u.active, key, take), false, nil
	}
	now := core.Now()
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
	if len(ready) == 0 { // only endpoints that requests have put out are left: better one of them than nobody
		ready = u.undismissed(ready)
	}
	if u.opts.SlowStart > 0 && !u.hashes(key) {
		ready = u.gently(ready, now)
	}
	switch len(ready) {
	case 0:
		return nil, false, ErrNoneReady
	case 1: // no choice, and no turn: else a second try would take the next request's, which then began where this one failed
		e = ready[0]
		u.count(e, take)
	default:
		e = u.ask(ready, key, take)
	}
	return e, take && u.live[e.Index].health.admit(now), nil
}

// ask lets the balancer choose. With take, one that goes by loads counts the request.
func (u *Upstream) ask(ready []*core.Endpoint, key string, take bool) *core.Endpoint {
	switch {
	case u.hashes(key):
		e := u.hash.Pick(ready, key)
		u.count(e, take)
		return e
	case take && u.metered != nil:
		return u.metered.Take(ready, key)
	}
	return u.balancer.Pick(ready, key)
}

// count counts a request that the balancer did not place, where it goes by loads.
func (u *Upstream) count(e *core.Endpoint, take bool) {
	if take && u.metered != nil {
		u.live[e.Index].load.Enter()
	}
}

// admitted appends the endpoints that may be asked now, but for those that were tried.
func (u *Upstream) admitted(ready, tried []*core.Endpoint, now core.Instant) []*core.Endpoint {
	for _, e := range u.active {
		if !slices.Contains(tried, e) && u.live[e.Index].health.admits(now, &u.opts.Health) {
			ready = append(ready, e)
		}
	}
	return ready
}

// undismissed appends the endpoints that are not out by checks.
func (u *Upstream) undismissed(list []*core.Endpoint) []*core.Endpoint {
	for _, e := range u.active {
		if !u.live[e.Index].health.dismissed() {
			list = append(list, e)
		}
	}
	return list
}

func (u *Upstream) allHealthy() bool {
	for _, e := range u.active {
		if !u.live[e.Index].health.healthy() {
			return false
		}
	}
	return true
}
