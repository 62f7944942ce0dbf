package limit

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Concurrency is a Limiter of what is under way at once: each take holds slots of its key until they are given back by Return. It keeps
// nothing of keys that hold none, so what it needs is bounded by what is under way.
type Concurrency struct {
	slots   atomic.Int64
	seed    maphash.Seed
	refused atomic.Uint64
	shards  [shardCount]slotShard
}

type slotShard struct {
	mu   sync.Mutex
	held map[uint64]int64
}

// NewConcurrency makes a limiter of so many slots for each key.
func NewConcurrency(slots int64) (*Concurrency, error) {
	if slots < 1 || slots > maxQuota {
		return nil, fmt.Errorf("concurrency %d: want from 1 to %d", slots, maxQuota)
	}
	c := &Concurrency{seed: maphash.MakeSeed()}
	c.slots.Store(slots)
	return c, nil
}

// slotWait is the RetryAfter of a take that found no slot: nobody knows when one will be given back.
const slotWait = time.Second

// Take implements Limiter: it holds cost slots.
func (c *Concurrency) Take(key string, cost int64) Decision {
	s, hash := c.enter(key)
	defer s.mu.Unlock()
	d := c.decide(s.held[hash], cost)
	switch {
	case !d.OK:
		c.refused.Add(1)
	case cost > 0:
		s.held[hash] += cost
		d.Remaining -= cost
	}
	return d
}

func (c *Concurrency) decide(held, cost int64) Decision {
	slots := c.slots.Load()
	d := Decision{Limit: slots, Remaining: max(slots-held, 0)}
	switch {
	case cost < 0 || cost > slots:
		d.RetryAfter = Never
	case cost > d.Remaining:
		d.RetryAfter = slotWait
	default:
		d.OK = true
	}
	return d
}

func (c *Concurrency) enter(key string) (*slotShard, uint64) {
	hash := maphash.String(c.seed, key)
	s := &c.shards[hash>>shardShift]
	s.mu.Lock()
	if s.held == nil {
		s.held = make(map[uint64]int64)
	}
	return s, hash
}

// Try implements Limiter.
func (c *Concurrency) Try(key string, cost int64) (d Decision, decided bool) {
	return c.Take(key, cost), true
}

// Peek implements Limiter.
func (c *Concurrency) Peek(key string, cost int64) Decision {
	s, hash := c.enter(key)
	defer s.mu.Unlock()
	return c.decide(s.held[hash], cost)
}

// Return implements Limiter: it gives slots back.
func (c *Concurrency) Return(key string, cost int64) {
	s, hash := c.enter(key)
	defer s.mu.Unlock()
	if left := s.held[hash] - max(cost, 0); left > 0 {
		s.held[hash] = left
	} else {
		delete(s.held, hash)
	}
}

// Reset implements Limiter. Slots that are held are no debt: it is an error.
func (c *Concurrency) Reset(string) error { return errSlots }

var errSlots = errors.New("slots are given back, not reset")

// Set changes the number of slots. Those that are held stay held.
func (c *Concurrency) Set(slots int64) { c.slots.Store(slots) }

// Usage implements Counted.
func (c *Concurrency) Usage() Usage {
	u := Usage{Refused: c.refused.Load()}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		u.Keys += len(s.held)
		s.mu.Unlock()
	}
	return u
}
