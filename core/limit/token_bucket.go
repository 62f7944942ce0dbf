package limit

import (
	"sync"
	"sync/atomic"
	"time"
)

// TokenBucket is a Limiter with one token bucket for each key, by the generic cell rate algorithm (ITU-T I.371): a bucket is
// one number, the theoretical arrival time. A new key has a full bucket; a bucket is forgotten only when it is full again.
//
// Keys are known by a 64-bit hash with a secret seed: two of a million keys share a bucket with a chance of 3e-8.
type TokenBucket struct {
	clock func() time.Duration // nil: nanotime
	hasher
	ceiling int // of a shard
	terms   atomic.Pointer[terms]
	never   atomic.Uint64 // refusals of impossible costs
	setting sync.Mutex    // one Set at a time
	shards  [shardCount]shard
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
	b := &TokenBucket{clock: o.Clock, hasher: newHasher(), ceiling: (o.Ceiling + shardCount - 1) / shardCount}
	b.terms.Store(&t)
	return b, nil
}

// Take implements Limiter. It does not allocate, but for a key that makes its shard grow.
//
// Refusals are exact because the clock is read after the bucket: whoever has charged it meanwhile did so before. In a large table that would be
// to wait for memory first and for the clock afterwards, so there a refusal looks at the clock once more (BenchmarkTakeMillionKeys).
func (b *TokenBucket) Take(key string, cost int64) (d Decision) {
	hash := b.hash(key)
	s := &b.shards[hash>>shardShift]
	var now time.Duration
	early := false // the clock was read before the bucket
	for {
		t := s.table.Load()
		if t == nil {
			b.prepare(s)
			continue
		}
		if uint64(cost) > uint64(t.burst) { // also below 0
			b.never.Add(1)
			d.Limit, d.RetryAfter, d.Window = t.burst, Never, t.window
			return d
		}
		if t.far && !early {
			prefetch(&t.slots[t.line(hash)])
			now, early = b.now(), true
		}
		tat := t.find(hash)
		if tat == nil && cost == 0 {
			tat = &t.overflow // what a new key would owe
		} else if tat == nil {
			now, t, tat = b.insert(s, hash)
			early = true
		}
		owed := tat.Load()
		if !early {
			now = b.now()
		}
		if owed == moved || !t.covers(now) {
			b.prepare(s)
			early = false
			continue
		}
		at, charge := t.at(now), cost*t.per
		debt := max(owed-at, 0) + charge
		if debt > t.full && early {
			if now = b.now(); !t.covers(now) {
				early = false
				continue
			}
			at = t.at(now)
			debt = max(owed-at, 0) + charge
		}
		if debt > t.full {
			s.refused.Add(1)
			t.refuse(&d, debt-charge, charge)
			return d
		}
		if cost == 0 || tat.CompareAndSwap(owed, at+debt) {
			t.grant(&d, debt)
			return d
		}
		early = true // somebody else was faster: at once again
	}
}

// now is the limiter's time.
func (b *TokenBucket) now() time.Duration {
	if b.clock == nil {
		return time.Duration(nanotime())
	}
	return b.clock()
}

// grant tells what is left of a bucket that owes debt, in units.
func (t *table) grant(d *Decision, debt int64) {
	d.OK, d.Limit, d.Remaining, d.Window = true, t.burst, t.byPer.of(t.full-debt), t.window
	d.owed, d.pace = debt, t.count
}

// refuse tells how far a bucket that owes debt is from granting charge, both in units.
func (t *table) refuse(d *Decision, debt, charge int64) {
	d.Limit, d.Remaining, d.Window = t.burst, t.byPer.of(t.full-debt), t.window
	d.RetryAfter = time.Duration(t.byCount.of(debt+charge-t.full-1) + 1)
	d.owed, d.pace = debt, t.count
}

// Try implements Limiter: a bucket in memory always decides.
func (b *TokenBucket) Try(key string, cost int64) (d Decision, decided bool) {
	return b.Take(key, cost), true
}

// Peek implements Limiter.
func (b *TokenBucket) Peek(key string, cost int64) (d Decision) {
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
			t.refuse(&d, debt, charge)
		} else {
			t.grant(&d, debt)
		}
		return d
	}
}

// look finds what a key owes, in which table and at which moment; owed is moved when the table has gone meanwhile.
func (b *TokenBucket) look(key string) (t *table, owed int64, now time.Duration) {
	hash := b.hash(key)
	s := &b.shards[hash>>shardShift]
	now = b.now()
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
		now := b.now()
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
