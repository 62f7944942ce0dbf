package limit

import (
	_ "embed"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core/redis"
)

//go:embed slots.lua
var slotsText string

var slotsScript = redis.NewScript(slotsText)

// RemoteConcurrency is a Limiter of what is under way at once in all gateways that use the same name in one Redis. A take is one script in
// one round trip, and so is giving back. What a take holds there is a lease, which the gateway prolongs for as long as it holds it (the
// registry's Sweep does): of a gateway that died, or that Redis does not hear from, the slots come free when their leases end. What Redis may
// hold though nobody does, since its answer or a return was lost on the way, the next sweep gives back.
//
// While Redis cannot be asked OnStoreError decides; slots that were granted here meanwhile are counted here until they are given back.
// A gateway that could not prolong its leases in time, or whose Redis has forgotten them, holds its slots all the same and claims them
// again: until some are given back there may be more than the limit.
type RemoteConcurrency struct {
	store   *Store
	name    string
	lease   time.Duration
	clock   func() time.Duration
	policy  atomic.Uint32
	op      atomic.Pointer[operation]
	local   *Concurrency // decides while the store is away
	shared  atomic.Int64 // gateways among which local shares
	refused atomic.Uint64
	away    atomic.Uint64
	serial  atomic.Uint64
	keeping atomic.Bool

	mu   sync.Mutex
	held map[string][]remoteSlot // by key, the latest last; no key without
	lost []lostSlot              // what the store may hold though nobody does
}

// remoteSlot is what one take holds.
type remoteSlot struct {
	member string // in the store; "" for what was granted here
	cost   int64
	open   bool          // granted without counting
	until  time.Duration // the lease ends, by this gateway's clock
}

// SlotTime is how long a slot is held in Redis by a gateway that says nothing more.
const SlotTime = 15 * time.Second

// newRemoteConcurrency makes a limiter of checked options.
func newRemoteConcurrency(name string, store *Store, o Options) (*RemoteConcurrency, error) {
	local, err := NewConcurrency(o.Burst)
	if err != nil {
		return nil, err
	}
	c := &RemoteConcurrency{store: store, name: name + "#slots", lease: o.SlotTime, clock: o.Clock, local: local, held: map[string][]remoteSlot{}}
	if c.lease <= 0 {
		c.lease = SlotTime
	}
	if c.clock == nil {
		c.clock = monotonic()
	}
	c.set(o)
	return c, nil
}

// set changes the number of slots and the policy. Those that are held stay held.
func (c *RemoteConcurrency) set(o Options) {
	c.op.Store(&operation{limit: o.Burst})
	c.policy.Store(uint32(o.OnStoreError))
	c.shared.Store(0)
}

// Take implements Limiter: it holds cost slots.
func (c *RemoteConcurrency) Take(key string, cost int64) Decision {
	if cost == 0 {
		return c.Peek(key, 0)
	}
	slot := remoteSlot{member: c.member(cost), cost: cost, until: c.clock() + c.lease}
	d, err := c.ask("take", key, cost, slot.member)
	if err != nil {
		if away, ok := errors.AsType[*redis.Unavailable](err); ok && away.Perhaps() {
			c.lose(key, slot.member)
		}
		return c.without(key, cost)
	}
	if d.OK {
		c.hold(key, slot)
	} else {
		c.refused.Add(1)
	}
	return d
}

// ask runs the script for a key.
func (c *RemoteConcurrency) ask(mode, key string, cost int64, members ...string) (Decision, error) {
	op := c.op.Load()
	if cost < 0 {
		return Decision{Limit: op.limit, RetryAfter: Never}, nil
	}
	args := append([]string{mode, itoa(op.limit), itoa(c.lease.Milliseconds()), itoa(cost)}, members...)
	d, err := c.store.runSlots(op, redisKey(key, c.name), args)
	if err != nil {
		c.away.Add(1)
	}
	return d, err
}

// without decides a take while the store is away.
func (c *RemoteConcurrency) without(key string, cost int64) Decision {
	most := c.op.Load().limit
	switch OnStoreError(c.policy.Load()) {
	case StoreErrorOpen:
		c.hold(key, remoteSlot{cost: cost, open: true})
		return Decision{OK: true, Limit: most, Remaining: most}
	case StoreErrorClosed:
		c.refused.Add(1)
		return Decision{Unavailable: true, Limit: most, RetryAfter: time.Second}
	}
	if n := c.store.Gateways(); c.shared.Swap(n) != n {
		c.local.Set(max(1, most/n))
	}
	d := c.local.Take(key, cost)
	if d.OK {
		c.hold(key, remoteSlot{cost: cost})
	} else {
		c.refused.Add(1)
	}
	return d
}

func (c *RemoteConcurrency) hold(key string, s remoteSlot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[strings.Clone(key)] = append(c.held[key], s)
}

// Try implements Limiter: nothing is decided without asking.
func (c *RemoteConcurrency) Try(string, int64) (d Decision, decided bool) { return Decision{}, false }

// Peek implements Limiter. While the store is away it tells of this gateway's share, whatever OnStoreError says.
func (c *RemoteConcurrency) Peek(key string, cost int64) Decision {
	d, err := c.ask("peek", key, cost)
	if err != nil {
		return c.local.Peek(key, cost)
	}
	return d
}

// Return implements Limiter: it gives slots back, the latest first. What the store does not hear of it is told again; otherwise the lease ends.
func (c *RemoteConcurrency) Return(key string, cost int64) {
	for cost > 0 {
		s, ok := c.last(key)
		if !ok {
			return
		}
		if s.cost > cost {
			c.giveBackPart(key, s, cost)
			return
		}
		cost -= s.cost
		c.giveBack(key, s)
	}
}

// last takes the latest slot of a key out of those that are held.
func (c *RemoteConcurrency) last(key string) (s remoteSlot, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.held[key]
	if len(list) == 0 {
		return s, false
	}
	s = list[len(list)-1]
	if len(list) == 1 {
		delete(c.held, key)
	} else {
		c.held[key] = list[:len(list)-1]
	}
	return s, true
}

func (c *RemoteConcurrency) giveBack(key string, s remoteSlot) {
	switch {
	case s.open:
	case s.member == "":
		c.local.Return(key, s.cost)
	default:
		if _, err := c.ask("back", key, 0, s.member); err != nil {
			c.lose(key, s.member)
		}
	}
}

// giveBackPart gives cost of a slot back: the rest is held as another take, which the store hears of first.
func (c *RemoteConcurrency) giveBackPart(key string, s remoteSlot, cost int64) {
	rest := s
	rest.cost -= cost
	switch {
	case s.open:
	case s.member == "":
		c.local.Return(key, cost)
	default:
		rest.member, rest.until = c.member(rest.cost), c.clock()+c.lease
		_, _ = c.ask("keep", key, 0, rest.member)
		defer c.giveBack(key, s)
	}
	c.hold(key, rest)
}

// member names a take in the store.
func (c *RemoteConcurrency) member(cost int64) string {
	return c.store.id + "." + strconv.FormatUint(c.serial.Add(1), 36) + ":" + itoa(cost)
}

// Reset implements Limiter. Slots that are held are no debt: it is an error.
func (c *RemoteConcurrency) Reset(string) error { return errSlots }

// Usage implements Counted.
func (c *RemoteConcurrency) Usage() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Usage{Keys: len(c.held), Refused: c.refused.Load(), StoreErrors: c.away.Load()}
}

// sweepShard gives back what was lost and prolongs leases, when the time has come for some, in the background; the registry calls it every second.
func (c *RemoteConcurrency) sweepShard(int) {
	due := c.due()
	if !c.lostAny() && len(due) == 0 || !c.keeping.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.keeping.Store(false)
		c.giveBackLost()
		c.keepAll(due)
	}()
}

// keepers is how many calls prolong leases at once: with one after the other a gateway that holds slots of ten thousand keys would not come round
// before its leases have ended.
const keepers = 64

// keepAll prolongs the leases of takes by key. When the store is away the next sweep tries again.
func (c *RemoteConcurrency) keepAll(due map[string][]string) {
	keys, away := make(chan string), atomic.Bool{}
	var all sync.WaitGroup
	for range min(keepers, len(due)) {
		all.Go(func() {
			for key := range keys {
				if !away.Load() && c.keep(key, due[key]) != nil {
					away.Store(true)
				}
			}
		})
	}
	for key := range due {
		keys <- key
	}
	close(keys)
	all.Wait()
}

// due are the takes a third of whose lease has passed, by key.
func (c *RemoteConcurrency) due() map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due map[string][]string
	limit := c.clock() + c.lease*2/3
	for key, list := range c.held {
		for _, s := range list {
			if s.member == "" || s.until > limit {
				continue
			}
			if due == nil {
				due = map[string][]string{}
			}
			due[key] = append(due[key], s.member)
		}
	}
	return due
}

// keepAtOnce bounds how long one script runs.
const keepAtOnce = 100

// keep prolongs the leases of some takes of a key. Those that were given back meanwhile, perhaps before their lease was prolonged, are given
// back again.
func (c *RemoteConcurrency) keep(key string, members []string) error {
	for len(members) > 0 {
		some := members[:min(len(members), keepAtOnce)]
		members = members[len(some):]
		until := c.clock() + c.lease
		if _, err := c.ask("keep", key, 0, some...); err != nil {
			return err
		}
		if gone := c.prolong(key, some, until); len(gone) > 0 {
			if _, err := c.ask("back", key, 0, gone...); err != nil {
				c.lose(key, gone...)
				return err
			}
		}
	}
	return nil
}

// prolong notes until when leases hold, and gives those that are held no more.
func (c *RemoteConcurrency) prolong(key string, members []string, until time.Duration) (gone []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.held[key]
	at := make(map[string]int, len(list))
	for i, s := range list {
		at[s.member] = i
	}
	for _, m := range members {
		if i, ok := at[m]; ok {
			list[i].until = until
		} else {
			gone = append(gone, m)
		}
	}
	return gone
}

// Slots tells whether what is taken from a limiter is held until it is given back.
func Slots(l Limiter) bool {
	switch l.(type) {
	case *Concurrency, *RemoteConcurrency:
		return true
	}
	return false
}
