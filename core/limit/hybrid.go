package limit

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hybrid decides here what a Remote would, with tokens that it has taken from there in advance: a lease for each key that comes often. A key
// costs a round trip for each lease instead of one for each take, and the next lease comes in the background, before the last is spent.
//
// Every token is taken from the store before it is granted here, so gateways together never grant more than the limit at any moment and the
// leases that they hold from before: of each key at most two leases a gateway. What a lease holds when it ends, after LeaseTime, is lost.
type Hybrid struct {
	remote *Remote
	clock  func() time.Duration
	seed   maphash.Seed
	size   atomic.Int64 // of a lease
	bound  int          // of leases in a shard
	ahead  chan struct{}
	lost   atomic.Uint64 // leases that were not fetched ahead, for there was no room
	shards [shardCount]leaseShard
}

// LeaseTime is how long a lease holds.
const LeaseTime = 2 * time.Second

// maxAhead is how many leases are fetched in the background at once.
const maxAhead = 64

type leaseShard struct {
	mu      sync.Mutex
	leases  map[uint64]*lease
	sweepAt time.Duration
}

// lease is what is known of a key here. The shard's mutex guards it.
type lease struct {
	left     int64         // tokens in hand
	until    time.Duration // they hold
	rest     int64         // what was left in the store
	refused  int64         // cost that the store refused; 0: none
	again    time.Duration // when it will be granted
	fetching chan struct{} // closed when the fetch under way has ended; nil: none
	window   time.Duration
	resets   time.Duration // when the key is as good as new
}

func newHybrid(remote *Remote, o Options) *Hybrid {
	h := &Hybrid{remote: remote, clock: o.Clock, seed: maphash.MakeSeed(), ahead: make(chan struct{}, maxAhead)}
	if h.clock == nil {
		h.clock = monotonic()
	}
	if o.Ceiling <= 0 {
		o.Ceiling = DefaultCeiling
	}
	h.bound = (o.Ceiling + shardCount - 1) / shardCount
	h.size.Store(leaseSize(o))
	return h
}

// leaseSize is the lease of options: a twentieth of the limit unless they say otherwise, and at least 1.
func leaseSize(o Options) int64 {
	if o.Lease > 0 {
		return min(o.Lease, o.Burst)
	}
	return max(1, o.Burst/20)
}

// Take implements Limiter. It waits when there is no lease.
func (h *Hybrid) Take(key string, cost int64) Decision {
	if cost == 0 {
		return h.Peek(key, 0)
	}
	const rounds = 3 // others may spend what was fetched for all of them
	for range rounds {
		d, fetching := h.try(key, cost)
		switch {
		case fetching == nil:
			return d
		case fetching == fetchIt:
			if d, ok := h.fetch(key, cost); ok {
				return d
			}
		default:
			select {
			case <-fetching:
			case <-time.After(h.remote.store.client.Timeout()):
				return h.remote.without(key, cost)
			}
		}
	}
	return h.remote.Take(key, cost)
}

// fetchIt stands for a fetch that the caller is to do.
var fetchIt = make(chan struct{})

// Try implements Limiter.
func (h *Hybrid) Try(key string, cost int64) (d Decision, decided bool) {
	s, hash := h.enter(key)
	defer s.mu.Unlock()
	l := s.leases[hash]
	if l == nil || cost == 0 {
		return Decision{}, false
	}
	return h.decide(l, key, cost)
}

// try decides, or says for which fetch to wait.
func (h *Hybrid) try(key string, cost int64) (Decision, chan struct{}) {
	s, hash := h.enter(key)
	defer s.mu.Unlock()
	l := s.leases[hash]
	if l == nil {
		if len(s.leases) >= h.bound && !h.room(s) {
			return h.direct(s, key, cost), nil
		}
		l = &lease{}
		s.leases[hash] = l
	}
	if d, decided := h.decide(l, key, cost); decided {
		return d, nil
	}
	if l.fetching != nil {
		return Decision{}, l.fetching
	}
	l.fetching = make(chan struct{})
	return Decision{}, fetchIt
}

// direct asks the store for a key that has no room here.
func (h *Hybrid) direct(s *leaseShard, key string, cost int64) Decision {
	s.mu.Unlock()
	defer s.mu.Lock()
	return h.remote.Take(key, cost)
}

// decide decides by the lease alone. The caller holds the mutex.
func (h *Hybrid) decide(l *lease, key string, cost int64) (Decision, bool) {
	now, limit := h.clock(), h.remote.op.Load().limit
	if now >= l.until {
		l.left = 0
	}
	d := Decision{Limit: limit, Window: l.window, owed: int64(max(l.resets-now, 0)), pace: 1}
	switch {
	case cost < 0 || cost > limit:
		d.RetryAfter = Never
	case l.left >= cost:
		l.left -= cost
		d.OK = true
		h.more(l, key)
	case l.refused > 0 && cost >= l.refused && now < l.again:
		d.RetryAfter = l.again - now
		h.remote.refused.Add(1)
	default:
		return Decision{}, false
	}
	d.Remaining = l.left + l.rest
	return d, true
}

// more fetches the next lease in the background when half of this one is spent.
func (h *Hybrid) more(l *lease, key string) {
	if l.fetching != nil || l.left > h.size.Load()/2 || h.size.Load() < 2 || l.refused > 0 && h.clock() < l.again {
		return
	}
	select {
	case h.ahead <- struct{}{}:
	default:
		h.lost.Add(1)
		return
	}
	l.fetching = make(chan struct{})
	key = strings.Clone(key)
	go func() {
		h.fetch(key, 0)
		<-h.ahead
	}()
}

// fetch takes a lease from the store and cost from the lease. It tells false when others may decide first what it brought.
func (h *Hybrid) fetch(key string, cost int64) (d Decision, ok bool) {
	size := max(h.size.Load(), cost)
	op := h.remote.op.Load()
	q := newQuestion(modeLease, size).about(op, h.remote.key(key))
	q.need = max(cost, 1)
	err := h.remote.store.ask(q)
	s, hash := h.enter(key)
	defer s.mu.Unlock()
	l := s.leases[hash]
	if l == nil { // reset meanwhile
		l = &lease{}
		s.leases[hash] = l
	}
	if l.fetching != nil {
		close(l.fetching)
		l.fetching = nil
	}
	if err != nil {
		h.remote.away.Add(1)
		if cost == 0 {
			return Decision{}, true
		}
		s.mu.Unlock()
		defer s.mu.Lock()
		return h.remote.without(key, cost), true
	}
	defer q.free()
	return h.put(l, q.decisions[0], q.got, cost)
}

// put notes what the store said, and takes cost.
func (h *Hybrid) put(l *lease, d Decision, got, cost int64) (Decision, bool) {
	now := h.clock()
	if now >= l.until {
		l.left = 0
	}
	l.window, l.rest, l.resets = d.Window, d.Remaining, now+d.Reset()
	if !d.OK {
		if d.RetryAfter != Never {
			l.refused, l.again = max(cost, 1), now+d.RetryAfter
		}
		if cost > 0 {
			h.remote.refused.Add(1)
		}
		d.Remaining += l.left
		return d, true
	}
	l.left += got
	l.until, l.refused = now+LeaseTime, 0
	if cost == 0 {
		return d, true
	}
	l.left -= cost
	d.Remaining += l.left
	return d, true
}

func (h *Hybrid) enter(key string) (*leaseShard, uint64) {
	hash := maphash.String(h.seed, key)
	s := &h.shards[hash>>shardShift]
	s.mu.Lock()
	if s.leases == nil {
		s.leases = make(map[uint64]*lease)
	}
	return s, hash
}

// room sweeps a shard that is full, now and then, and tells whether that made room. The caller holds the mutex.
func (h *Hybrid) room(s *leaseShard) bool {
	if now := h.clock(); now >= s.sweepAt {
		s.sweepAt = now + sweepPause
		h.sweep(s)
	}
	return len(s.leases) < h.bound
}

// sweep forgets leases that are over. The caller holds the mutex.
func (h *Hybrid) sweep(s *leaseShard) {
	now := h.clock()
	for hash, l := range s.leases {
		if l.fetching == nil && now >= l.until && now >= l.again {
			delete(s.leases, hash)
		}
	}
}

// Sweep forgets leases that are over.
func (h *Hybrid) Sweep() {
	for i := range h.shards {
		h.sweepShard(i)
	}
}

func (h *Hybrid) sweepShard(i int) {
	s := &h.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	h.sweep(s)
}

// Peek implements Limiter.
func (h *Hybrid) Peek(key string, cost int64) Decision {
	s, hash := h.enter(key)
	left := int64(0)
	if l := s.leases[hash]; l != nil && h.clock() < l.until {
		left = l.left
	}
	s.mu.Unlock()
	d := h.remote.Peek(key, max(cost-left, 0))
	d.Remaining += left
	return d
}

// Return implements Limiter: the lease gets it back, or else the store.
func (h *Hybrid) Return(key string, cost int64) {
	s, hash := h.enter(key)
	l := s.leases[hash]
	if l != nil && h.clock() < l.until {
		l.left += max(cost, 0)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	h.remote.Return(key, cost)
}

// Reset implements Limiter. Other gateways may refuse the key for as long as they were told to, and have their leases.
func (h *Hybrid) Reset(key string) error {
	s, hash := h.enter(key)
	if l := s.leases[hash]; l != nil && l.fetching == nil {
		delete(s.leases, hash)
	} else if l != nil {
		l.left, l.refused = 0, 0
	}
	s.mu.Unlock()
	return h.remote.Reset(key)
}

// set changes rate, burst, lease and policy.
func (h *Hybrid) set(o Options) error {
	if err := h.remote.set(o); err != nil {
		return err
	}
	h.size.Store(leaseSize(o))
	return nil
}

func (h *Hybrid) refuse(n uint64) { h.remote.refuse(n) }

// Usage implements Counted.
func (h *Hybrid) Usage() Usage {
	u := h.remote.Usage()
	u.Dropped = h.lost.Load()
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		u.Keys += len(s.leases)
		s.mu.Unlock()
	}
	return u
}
