package upstream

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/moongate/moongate/core"
)

// rise is the way of an endpoint that is new, or back, to its full share of the requests: it is cold, and a share that comes at once would
// put it out again.
type rise struct {
	since atomic.Int64 // core.Instant; 0: it has its full share
}

// leastShare is the part of its full share that an endpoint gets at once. With nothing it would never warm up where there is little to do.
const leastShare = 0.1

func (r *rise) begin(now core.Instant) { r.since.Store(int64(now)) }

// rises tells whether some endpoint is on its way to its full share.
func (u *Upstream) rises() bool {
	if u.opts.SlowStart == 0 {
		return false
	}
	now := core.Now()
	return slices.ContainsFunc(u.active, func(e *core.Endpoint) bool { return u.share(e, now) < 1 })
}

// share is the part of its full share that an endpoint gets now.
func (u *Upstream) share(e *core.Endpoint, now core.Instant) float64 {
	since := u.live[e.Index].rise.since.Load()
	if since == 0 {
		return 1
	}
	part := float64(now.Sub(core.Instant(since))) / float64(u.opts.SlowStart)
	if part >= 1 {
		u.live[e.Index].rise.since.CompareAndSwap(since, 0)
		return 1
	}
	return max(part, leastShare)
}

// gently leaves endpoints out of some choices, so that each gets its share of those that remain. Who has the largest stays in all: where
// everybody is new there is nobody to wait for.
func (u *Upstream) gently(ready []*core.Endpoint, now core.Instant) []*core.Endpoint {
	most := 0.0
	for _, e := range ready {
		most = max(most, u.share(e, now))
	}
	return slices.DeleteFunc(ready, func(e *core.Endpoint) bool {
		share := u.share(e, now)
		return share < most && rand.Float64()*most >= share
	})
}
