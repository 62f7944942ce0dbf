package limit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	shardCount = 64
	shardShift = 64 - 6
	// sweepPause is the least time between two sweeps of a shard that is at its ceiling.
	sweepPause = time.Second
)

// TokenBucket is a Limiter with one token bucket for each key, by the generic cell rate algorithm (ITU-T I.371): a bucket is
// one number, the theoretical arrival time. A new key has a full bucket; a bucket is forgotten only when it is full again.
//
// Keys are known by a 64-bit hash with a secret seed: two of a million keys share a bucket with a chance of 3e-8.
type TokenBucket struct {
	clock   func() time.Duration
	seed    maphash.Seed
	ceiling int // of a shard
	terms   atomic.Pointer[terms]
	never   atomic.Uint64 // refusals of impossible costs
	setting sync.Mutex    // one Set at a time
	shards  [shardCount]shard
}

// shard holds the buckets of one 64th of the hashes. Takes read the table; the mutex is for building it.
type shard struct {
	table    atomic.Pointer[table] // nil: no key yet
	refused  atomic.Uint64
	overflow atomic.Uint64
	mu       sync.Mutex
	_        [32]byte // a cache line for each shard
}

// NewTokenBucket makes a limiter. The error says which option is impossible and what would be right.
func NewTokenBucket(o Options) (*TokenBucket, error) {
	t, err := settle(o.Rate, o.Burst)
	if err != nil {
		return nil, err
	}
	if o.Ceiling <= 0 {
		o.Ceiling = DefaultCeiling
	}
	if o.Clock == nil {
		o.Clock = monotonic()
	}
	b := &TokenBucket{clock: o.Clock, seed: maphash.MakeSeed(), ceiling: (o.Ceiling + shardCount - 1) / shardCount}
	b.terms.Store(&t)
	return b, nil
}

// Take implements Limiter. It does not allocate, but for a key that makes its shard grow.
func (b *TokenBucket) Take(key string, cost int64) Decision {
	hash := b.hash(key)
	s := &b.shards[hash>>shardShift]
	now := b.clock()
	for {
		t := s.table.Load()
		if t == nil || !t.covers(now) {
			now = b.prepare(s)
			continue
		}
		if uint64(cost) > uint64(t.burst) { // also below 0
			b.never.Add(1)
			return Decision{Limit: t.burst, RetryAfter: Never, Window: t.window}
		}
		tat := t.find(hash)
		if tat == nil && cost == 0 {
			tat = &t.overflow // what a new key would owe
		} else if tat == nil {
			now, t, tat = b.insert(s, hash)
		}
		owed := tat.Load()
		if owed == moved {
			now = b.prepare(s)
			continue
		}
		charge := cost * t.per
		at := t.at(now)
		debt := max(owed-at, 0)
		if debt+charge > t.full {
			// Another goroutine may have charged the bucket at a later moment than ours. What we read of it lies in the
			// past by now, so a second look at the clock makes the refusal exact.
			if now = b.clock(); !t.covers(now) {
				continue
			}
			at = t.at(now)
			if debt = max(owed-at, 0); debt+charge > t.full {
				s.refused.Add(1)
				return t.refuse(debt, charge)
			}
		}
		if cost == 0 || tat.CompareAndSwap(owed, at+debt+charge) {
			debt += charge
			return Decision{OK: true, Limit: t.burst, Remaining: (t.full - debt) / t.per, Window: t.window, owed: debt, pace: t.count}
		}
	}
}

// grant tells what is left of a bucket that owes debt, in units.
func (t *table) grant(debt int64) Decision {
	return Decision{OK: true, Limit: t.burst, Remaining: (t.full - debt) / t.per, Window: t.window, owed: debt, pace: t.count}
}

// refuse tells how far a bucket that owes debt is from granting charge, both in units.
func (t *table) refuse(debt, charge int64) Decision {
	wait := debt + charge - t.full
	return Decision{
		Limit:      t.burst,
		Remaining:  (t.full - debt) / t.per,
		RetryAfter: time.Duration((wait-1)/t.count + 1),
		Window:     t.window,
		owed:       debt, pace: t.count,
	}
}

// Try implements Limiter: a bucket in memory always decides.
func (b *TokenBucket) Try(key string, cost int64) (d Decision, decided bool) {
	return b.Take(key, cost), true
}

// Peek implements Limiter.
func (b *TokenBucket) Peek(key string, cost int64) Decision {
	for {
		t, owed, now := b.look(key)
		if owed == moved {
			continue
		}
		if uint64(cost) > uint64(t.burst) {
			return Decision{Limit: t.burst, RetryAfter: Never, Window: t.window}
		}
		debt, charge := max(owed-t.at(now), 0), cost*t.per
		if debt+charge > t.full {
			return t.refuse(debt, charge)
		}
		return t.grant(debt)
	}
}

// look finds what a key owes, in which table and at which moment; owed is moved when the table has gone meanwhile.
func (b *TokenBucket) look(key string) (t *table, owed int64, now time.Duration) {
	hash := b.hash(key)
	s := &b.shards[hash>>shardShift]
	now = b.clock()
	for t = s.table.Load(); t == nil || !t.covers(now); t = s.table.Load() {
		now = b.prepare(s)
	}
	tat := t.find(hash)
	if tat == nil {
		tat = &t.overflow // what a new key would owe
	}
	if owed = tat.Load(); owed == moved {
		b.prepare(s)
	}
	return t, owed, now
}

// Return implements Limiter. A bucket that has been forgotten meanwhile is full and gets nothing; nor does the one that keys share at the
// ceiling.
func (b *TokenBucket) Return(key string, cost int64) {
	b.settleDebt(key, func(t *table, owed, at int64) int64 { return max(owed-max(cost, 0)*t.per, at) })
}

// Reset implements Limiter.
func (b *TokenBucket) Reset(key string) error {
	b.settleDebt(key, func(_ *table, _, at int64) int64 { return at })
	return nil
}

// settleDebt lowers what a key with a bucket of its own owes.
func (b *TokenBucket) settleDebt(key string, lower func(t *table, owed, at int64) int64) {
	hash := b.hash(key)
	s := &b.shards[hash>>shardShift]
	for {
		now := b.clock()
		t := s.table.Load()
		if t == nil {
			return
		}
		if !t.covers(now) {
			b.prepare(s)
			continue
		}
		tat := t.find(hash)
		if tat == nil {
			return
		}
		owed, at := tat.Load(), t.at(now)
		switch {
		case owed == moved:
			b.prepare(s)
		case owed <= at || tat.CompareAndSwap(owed, lower(t, owed, at)):
			return
		}
	}
}

func (b *TokenBucket) hash(key string) uint64 { return max(maphash.String(b.seed, key), 1) }

// Set changes rate and burst, at once for every key; nobody's bucket is refilled. A bucket goes on owing the tokens that it
// owed, at most the whole new burst. On an error, as from NewTokenBucket, nothing has changed.
func (b *TokenBucket) Set(rate Rate, burst int64) error {
	t, err := settle(rate, burst)
	if err != nil {
		return err
	}
	b.setting.Lock()
	defer b.setting.Unlock()
	if *b.terms.Load() == t {
		return nil
	}
	b.terms.Store(&t)
	b.Sweep()
	return nil
}

// Sweep forgets the buckets that are full and gives their memory back. Growth does it too; an owner calls it where a flood of
// keys may have passed and no new ones come.
func (b *TokenBucket) Sweep() {
	for i := range b.shards {
		b.sweepShard(i)
	}
}

func (b *TokenBucket) sweepShard(i int) {
	s := &b.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if t == nil || t.used == 0 && t.terms == *b.terms.Load() {
		return
	}
	s.table.Store(t.rebuild(*b.terms.Load(), b.clock()))
}

// Refused is the number of takes refused so far.
func (b *TokenBucket) Refused() uint64 {
	sum := b.never.Load()
	for i := range b.shards {
		sum += b.shards[i].refused.Load()
	}
	return sum
}

// Overflowed is the number of keys that came when there was no room for a bucket of their own; a key counts each time.
func (b *TokenBucket) Overflowed() uint64 {
	sum := uint64(0)
	for i := range b.shards {
		sum += b.shards[i].overflow.Load()
	}
	return sum
}

// Len is the number of buckets in memory, those not yet forgotten included.
func (b *TokenBucket) Len() int {
	sum := 0
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		if t := s.table.Load(); t != nil {
			sum += t.used
		}
		s.mu.Unlock()
	}
	return sum
}

// prepare waits until the shard has a table for the present moment, and gives that moment. The clock is read under the mutex,
// so that no epoch is ever later than now.
func (b *TokenBucket) prepare(s *shard) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := b.clock()
	b.current(s, now)
	return now
}

// current gives the shard's table, made or moved to another epoch if need be. The caller holds the shard's mutex.
func (b *TokenBucket) current(s *shard, now time.Duration) *table {
	t := s.table.Load()
	switch {
	case t == nil:
		t = newTable(*b.terms.Load(), now, 0)
	case !t.covers(now):
		t = t.rebuild(*b.terms.Load(), now)
	default:
		return t
	}
	s.table.Store(t)
	return t
}

// room gives the shard's table at that moment, after what can be done to make room for one more bucket. The caller holds the
// shard's mutex.
func (b *TokenBucket) room(s *shard, t *table, now time.Duration) *table {
	full := t.used >= b.ceiling
	if full && now < t.sweepAt || !full && !t.crowded() {
		return t
	}
	t = t.rebuild(*b.terms.Load(), now)
	if full {
		t.sweepAt = now + sweepPause
	}
	s.table.Store(t)
	return t
}

// insert gives the key's bucket and its table, a new bucket if there is none, the overflow bucket if there is no room.
func (b *TokenBucket) insert(s *shard, hash uint64) (now time.Duration, t *table, tat *atomic.Int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = b.clock()
	t = b.current(s, now)
	if tat = t.find(hash); tat != nil {
		return now, t, tat
	}
	if t = b.room(s, t, now); t.used >= b.ceiling {
		s.overflow.Add(1)
		return now, t, &t.overflow
	}
	// What the key may have taken while it had to share, it still owes.
	return now, t, t.add(hash, max(t.at(now), t.overflow.Load()))
}
