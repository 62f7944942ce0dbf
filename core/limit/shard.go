package limit

import (
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

// shard holds the buckets of one 64th of the hashes. Takes read the table; the mutex is for building it.
type shard struct {
	table    atomic.Pointer[table] // nil: no key yet
	refused  atomic.Uint64
	overflow atomic.Uint64
	mu       sync.Mutex
	_        [32]byte // a cache line for each shard
}

// prepare waits until the shard has a table for the present moment, and gives that moment. The clock is read under the mutex,
// so that no epoch is ever later than now.
func (b *TokenBucket) prepare(s *shard) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := b.now()
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
	now = b.now()
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

func (b *TokenBucket) sweepShard(i int) {
	s := &b.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if t == nil || t.used == 0 && t.terms == *b.terms.Load() {
		return
	}
	s.table.Store(t.rebuild(*b.terms.Load(), b.now()))
}
