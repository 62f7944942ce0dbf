package limit

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// QuotaOptions are the settings of a Quota.
type QuotaOptions struct {
	// Count is what a key may take in one window, at least 1.
	Count int64
	// Unit is the window.
	Unit Unit
	// Zone is the time zone of the calendar; nil is UTC.
	Zone *time.Location
	// Ceiling bounds the keys in memory (about 40 bytes each); 0 means DefaultCeiling. Keys that come at the ceiling share one
	// count for each shard until the window ends: memory and limit hold, such keys are served less.
	Ceiling int
	// Clock is as in Options. Wall gives the system's time; nil is time.Now.
	Clock func() time.Duration
	Wall  func() time.Time
}

// Quota is a Limiter that grants each key so much in each window of the calendar. When a window ends, everybody's count begins anew. Steps
// of the system's clock neither bring a window twice nor hold one for more than twice its length.
type Quota struct {
	clock    func() time.Duration
	seed     maphash.Seed
	ceiling  int
	calendar calendar
	count    atomic.Int64
	refused  atomic.Uint64
	overflow atomic.Uint64
	shards   [shardCount]quotaShard
}

type quotaShard struct {
	mu     sync.Mutex
	begin  time.Time // of the window that is counted
	used   map[uint64]int64
	shared int64 // of keys that found no room
}

// NewQuota makes a limiter. The error says which option is impossible and what would be right.
func NewQuota(o QuotaOptions) (*Quota, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Ceiling <= 0 {
		o.Ceiling = DefaultCeiling
	}
	if o.Clock == nil {
		o.Clock = monotonic()
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	q := &Quota{clock: o.Clock, seed: maphash.MakeSeed(), ceiling: (o.Ceiling + shardCount - 1) / shardCount}
	q.calendar.unit, q.calendar.zone, q.calendar.wall = o.Unit, o.Zone, &wall{mono: o.Clock, system: o.Wall}
	q.count.Store(o.Count)
	return q, nil
}

func (o *QuotaOptions) check() error {
	if o.Count < 1 || o.Count > maxQuota {
		return fmt.Errorf("quota %d: want from 1 to %d", o.Count, maxQuota)
	}
	if o.Unit < Minute || o.Unit > Month {
		return fmt.Errorf("quota: want a window from minute to month")
	}
	return nil
}

// maxQuota is what a float still counts exactly.
const maxQuota = 1 << 52

// Take implements Limiter.
func (q *Quota) Take(key string, cost int64) Decision {
	now := q.clock()
	s, hash, window := q.enter(key, now)
	defer s.mu.Unlock()
	used, own := s.used[hash]
	if !own {
		used = s.shared
	}
	d := q.decide(used, cost, window, now)
	switch {
	case !d.OK:
		q.refused.Add(1)
	case cost == 0:
	case own || len(s.used) < q.ceiling:
		s.used[hash] = used + cost // what the key may have taken while it had to share is in used
		d.Remaining -= cost
	default:
		s.shared += cost
		d.Remaining -= cost
		q.overflow.Add(1)
	}
	return d
}

// decide says whether cost fits, charging nothing.
func (q *Quota) decide(used, cost int64, window *stretch, now time.Duration) Decision {
	limit, left := q.count.Load(), max(window.to-now, 1)
	d := Decision{Limit: limit, Remaining: max(limit-used, 0), Window: window.end.Sub(window.begin), owed: int64(left), pace: 1}
	switch {
	case cost < 0 || cost > limit:
		d.RetryAfter = Never
	case cost > d.Remaining:
		d.RetryAfter = left
	default:
		d.OK = true
	}
	return d
}

// enter locks the shard of a key, which counts the present window from then on.
func (q *Quota) enter(key string, now time.Duration) (*quotaShard, uint64, *stretch) {
	hash := maphash.String(q.seed, key)
	s := &q.shards[hash>>shardShift]
	s.mu.Lock()
	window := q.calendar.current(now)
	if !s.begin.Equal(window.begin) || s.used == nil {
		s.begin, s.used, s.shared = window.begin, make(map[uint64]int64), 0
	}
	return s, hash, window
}

// Try implements Limiter: a count in memory always decides.
func (q *Quota) Try(key string, cost int64) (d Decision, decided bool) {
	return q.Take(key, cost), true
}

// Peek implements Limiter.
func (q *Quota) Peek(key string, cost int64) Decision {
	now := q.clock()
	s, hash, window := q.enter(key, now)
	defer s.mu.Unlock()
	used, own := s.used[hash]
	if !own {
		used = s.shared
	}
	return q.decide(used, cost, window, now)
}

// Return implements Limiter. What was taken in a window that is over is gone with it.
func (q *Quota) Return(key string, cost int64) {
	s, hash, _ := q.enter(key, q.clock())
	defer s.mu.Unlock()
	if used, own := s.used[hash]; own {
		s.used[hash] = max(used-max(cost, 0), 0)
	}
}

// Reset implements Limiter.
func (q *Quota) Reset(key string) error {
	s, hash, _ := q.enter(key, q.clock())
	defer s.mu.Unlock()
	if _, own := s.used[hash]; own {
		s.used[hash] = 0
	}
	return nil
}

// Set changes the count, at once for every key; what was taken stays taken.
func (q *Quota) Set(count int64) { q.count.Store(count) }

// Sweep forgets the keys of windows that are over.
func (q *Quota) Sweep() {
	for i := range q.shards {
		q.sweepShard(i)
	}
}

func (q *Quota) sweepShard(i int) {
	s := &q.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used != nil && !s.begin.Equal(q.calendar.current(q.clock()).begin) {
		s.used = nil
	}
}

// Usage implements Counted.
func (q *Quota) Usage() Usage {
	u := Usage{Refused: q.refused.Load(), Overflowed: q.overflow.Load()}
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		u.Keys += len(s.used)
		s.mu.Unlock()
	}
	return u
}
