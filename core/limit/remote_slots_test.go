package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

// running is a limiter of slots with the registry that sweeps it.
func running(t *testing.T, w world, slots int64, change func(*limit.Options)) (*limit.Registry, limit.Limiter) {
	t.Helper()
	r, o := new(limit.Registry), slotOptions(slots)
	if change != nil {
		change(&o)
	}
	p := r.Plan()
	l := w.declare(t, p, "slots", o)
	p.Commit()
	return r, l
}

// prolonged sweeps, as a registry's owner does every second, until a lease has been prolonged: a sweep does nothing while the one before it is
// under way, which it is until its answers have come.
func (s *simulator) prolonged(t *testing.T, r *limit.Registry) {
	t.Helper()
	redistest.Until(t, "a lease is prolonged", func() bool {
		r.Sweep()
		s.mu.Lock()
		defer s.mu.Unlock()
		latest := float64(s.micros()/1000 + limit.SlotTime.Milliseconds())
		for _, leases := range s.sorted {
			for _, end := range leases {
				if end == latest {
					return true
				}
			}
		}
		return false
	}, func() string { return "" })
}

// emptied waits until nothing is held: what is given back while its lease is prolonged is given back again.
func (s *simulator) emptied(t *testing.T) {
	t.Helper()
	redistest.Until(t, "no key is left", func() bool { return s.keys() == 0 }, func() string { return fmt.Sprint(s.keys(), " are left") })
}

func TestGatewaysShareSlotsAndADeadOnesComeFree(t *testing.T) {
	s := newSimulator(t)
	alive, l := running(t, s.world(t, ""), 3, nil)
	_, dead := running(t, s.world(t, ""), 3, nil)
	if !l.Take("a", 1).OK || granted(dead, "a", 9, 1) != 2 || l.Take("a", 1).OK {
		t.Fatal("three slots for both")
	}
	for range 5 { // the one goes on telling that it holds its slot, the other says nothing
		s.clock.forward(limit.SlotTime / 2)
		s.prolonged(t, alive)
	}
	if n := granted(l, "a", 9, 1); n != 2 {
		t.Errorf("%d came free, want the 2 of the dead gateway", n)
	}
	dead.Return("a", 2) // it was not dead: what it gives back is others' by now
	if l.Take("a", 1).OK {
		t.Error("a slot was given back that nobody held")
	}
	l.Return("a", 3)
	s.emptied(t)
}

func TestSlotsOutliveARedisThatForgets(t *testing.T) {
	s := newSimulator(t)
	r, l := running(t, s.world(t, ""), 2, nil)
	granted(l, "a", 2, 1)
	s.mu.Lock()
	clear(s.sorted)
	s.mu.Unlock()
	s.clock.forward(limit.SlotTime / 2)
	r.Sweep()
	redistest.Until(t, "they are claimed again", func() bool { return l.Peek("a", 1).Remaining == 0 }, func() string { return "" })
}

func TestSlotsWhileRedisIsAway(t *testing.T) {
	for policy, want := range map[limit.OnStoreError]int{limit.StoreErrorLocal: 2, limit.StoreErrorOpen: 9, limit.StoreErrorClosed: 0} {
		f := redistest.NewFake(t)
		f.Down()
		c := connect(t, redis.Options{Addresses: []string{f.Address}, Timeout: 50 * time.Millisecond})
		w := world{options: func(o *limit.Options) { o.Redis = c }}
		_, l := running(t, w, 4, func(o *limit.Options) { o.OnStoreError, o.Gateways = policy, 2 })
		for range 2 {
			if n := granted(l, "a", 9, 1); n != want {
				t.Errorf("policy %d: %d passed, want %d", policy, n, want)
			}
			if d := l.Take("a", 1); policy == limit.StoreErrorClosed && !d.Unavailable {
				t.Errorf("closed: %+v", d)
			}
			l.Return("a", 3)
			l.Return("a", 100)
		}
		if u := l.(limit.Counted).Usage(); u.Keys != 0 || u.StoreErrors == 0 {
			t.Errorf("policy %d: usage %+v", policy, u)
		}
	}
}

func TestHybridSlotsAreRefused(t *testing.T) {
	s := newSimulator(t)
	o := slotOptions(2)
	o.Redis, o.Hybrid = s.world(t, "").redis, true
	if _, err := new(limit.Registry).Plan().Declare("slots", o); err == nil {
		t.Error("they were taken")
	}
}

// TestSlotsOfARedisThatStoodStillComeBack: it takes slots with nobody waiting for the answer any more, and hears of no return. None of these may
// be out of use until its lease ends, which it does not here: the clock stands.
func TestSlotsOfARedisThatStoodStillComeBack(t *testing.T) {
	s := newSimulator(t)
	c := connect(t, redis.Options{Addresses: []string{s.fake.Address}, Timeout: 200 * time.Millisecond})
	w := world{options: func(o *limit.Options) { o.Redis, o.Clock = c, s.clock.read }}
	r, l := running(t, w, 2, nil)
	redistest.Until(t, "a slot is held", func() bool { return l.Take("returned", 1).OK }, func() string { return "" })
	s.fake.Delay(time.Second)
	l.Return("returned", 1)
	for range 3 {
		if d := l.Take("taken", 1); d.OK || !d.Unavailable {
			t.Errorf("while Redis stands still: %+v", d)
		}
	}
	s.fake.Delay(0)
	redistest.Until(t, "all slots are free", func() bool {
		r.Sweep()
		return l.Peek("taken", 2).OK && l.Peek("returned", 2).OK && s.keys() == 0
	}, func() string { return fmt.Sprint(s.keys(), " keys are left") })
}

// clocks is a world whose gateway has a clock of its own beside the server's.
func (s *simulator) clocks(t *testing.T) (w world, own *clock) {
	w, own = s.world(t, ""), new(clock)
	w.options = func(o *limit.Options) { o.Redis, o.Clock = w.redis, own.read }
	return w, own
}

// TestStepsOfTheServersClockLockNobodyOut: nor does a failover to a server whose clock is behind. Of what a dead gateway held no slot is out of use
// for longer than a lease.
func TestStepsOfTheServersClockLockNobodyOut(t *testing.T) {
	s := newSimulator(t)
	w, own := s.clocks(t)
	alive, l := running(t, w, 3, nil)
	_, dead := running(t, s.world(t, ""), 3, nil)
	if !l.Take("a", 1).OK || granted(dead, "a", 9, 1) != 2 {
		t.Fatal("three slots for both")
	}
	s.clock.forward(-5 * time.Hour)
	if l.Take("a", 1).OK {
		t.Error("a step back gave a slot away")
	}
	for range 4 {
		s.clock.forward(limit.SlotTime / 3)
		own.forward(limit.SlotTime / 3)
		s.prolonged(t, alive)
	}
	if n := granted(l, "a", 9, 1); n != 2 {
		t.Errorf("%d came free, want the 2 of the dead gateway", n)
	}
	l.Return("a", 3)
	s.emptied(t)
}

// TestAStepForwardOfTheServersClockIsMended: it ends all leases at once; who holds slots claims them again, and what was granted beyond the limit
// meanwhile is gone when it is given back.
func TestAStepForwardOfTheServersClockIsMended(t *testing.T) {
	s := newSimulator(t)
	w, own := s.clocks(t)
	r, l := running(t, w, 2, nil)
	other, o := running(t, w, 2, nil)
	granted(l, "a", 2, 1)
	s.clock.forward(5 * time.Hour)
	if n := granted(o, "a", 9, 1); n != 2 {
		t.Fatalf("%d passed after the step", n)
	}
	own.forward(limit.SlotTime / 2)
	r.Sweep()
	other.Sweep()
	o.Return("a", 2)
	redistest.Until(t, "those that are held count again", func() bool { return !l.Peek("a", 1).OK }, func() string { return "" })
	l.Return("a", 2)
	s.emptied(t)
	if d := o.Peek("a", 2); !d.OK {
		t.Errorf("%+v", d)
	}
}

// TestLeasesOfManyKeysAreProlongedAtOnce: one call does not wait for the answer to another.
func TestLeasesOfManyKeysAreProlongedAtOnce(t *testing.T) {
	s := newSimulator(t)
	r, l := running(t, s.world(t, ""), 1, nil)
	const keys = 40
	for i := range keys {
		if !l.Take(fmt.Sprint("key ", i), 1).OK {
			t.Fatal(i)
		}
	}
	s.clock.forward(limit.SlotTime / 2)
	before := s.fake.Seen()
	s.fake.Silence(true)
	r.Sweep()
	redistest.Until(t, "all are asked for with no answer there", func() bool { return s.fake.Seen() >= before+keys }, func() string { return fmt.Sprint(s.fake.Seen() - before) })
}
