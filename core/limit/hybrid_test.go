package limit_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

// hybrids makes one limiter for each of n gateways, all in one simulated Redis.
func hybrids(t *testing.T, s *simulator, n int, o limit.Options) []limit.Limiter {
	var all []limit.Limiter
	for i := range n {
		w := s.world(t, strconv.Itoa(i))
		o.Hybrid = true
		all = append(all, w.limiter(t, o))
	}
	return all
}

func TestGatewaysWithLeasesGrantTheLimitAndNoMore(t *testing.T) {
	s := newSimulator(t)
	const burst, lease, gateways = 400, 10, 4
	o := bucketOptions(1, 24*time.Hour, burst)
	o.Lease = lease
	all := hybrids(t, s, gateways, o)
	var passed atomic.Int64
	var takers sync.WaitGroup
	for i := range 16 {
		takers.Go(func() {
			for range 100 {
				if all[i%gateways].Take("hot", 1).OK {
					passed.Add(1)
				}
			}
		})
	}
	takers.Wait()
	if n := passed.Load(); n > burst || n < burst-2*lease*gateways {
		t.Errorf("%d passed, want %d, less what leases hold", n, burst)
	}
}

func TestGatewaysWithLeasesKeepTheRate(t *testing.T) {
	s := newSimulator(t)
	const perSecond, lease, gateways, seconds = 100, 5, 3, 10
	o := bucketOptions(perSecond, time.Second, perSecond)
	o.Lease = lease
	all := hybrids(t, s, gateways, o)
	passed := 0
	for range seconds * 20 {
		s.clock.forward(50 * time.Millisecond)
		for _, l := range all {
			passed += granted(l, "hot", 6, 1)
		}
	}
	limit := perSecond * (seconds + 1)
	if passed > limit*105/100+2*lease*gateways {
		t.Errorf("%d passed in %d s, want at most 1.05 times %d and the leases", passed, seconds, limit)
	}
	if passed < limit*80/100 {
		t.Errorf("%d passed in %d s, want about %d", passed, seconds, limit)
	}
}

func TestHotKeyCostsARoundTripForEachLease(t *testing.T) {
	s := newSimulator(t)
	o := bucketOptions(1, 24*time.Hour, 10000)
	o.Lease = 100
	l := hybrids(t, s, 1, o)[0]
	l.Take("hot", 1)
	before := s.fake.Seen()
	if n := granted(l, "hot", 2000, 1); n != 2000 {
		t.Fatalf("%d passed", n)
	}
	if trips := s.fake.Seen() - before; trips > 60 {
		t.Errorf("%d round trips for 2000 takes", trips)
	}
}

func TestRefusedKeyIsRefusedHere(t *testing.T) {
	s := newSimulator(t)
	l := hybrids(t, s, 1, bucketOptions(1, time.Minute, 1))[0]
	l.Take("a", 1)
	l.Take("a", 1)
	before := s.fake.Seen()
	for range 100 {
		if d := l.Take("a", 1); d.OK || d.RetrySeconds() < 1 || d.RetrySeconds() > 60 {
			t.Fatalf("%+v", d)
		}
	}
	if n := s.fake.Seen() - before; n > 2 {
		t.Errorf("%d round trips for a key that was refused", n)
	}
	s.clock.forward(time.Minute)
	if d := l.Take("a", 1); !d.OK {
		t.Errorf("when its time has come: %+v", d)
	}
}

func TestLeaseEndsAndMemoryIsBounded(t *testing.T) {
	s := newSimulator(t)
	o := bucketOptions(1, 24*time.Hour, 100)
	o.Lease, o.Ceiling = 10, 64
	l := hybrids(t, s, 1, o)[0].(*limit.Hybrid)
	for i := range 300 {
		if d := l.Take(strconv.Itoa(i), 1); !d.OK {
			t.Fatalf("key %d: %+v", i, d)
		}
	}
	if n := l.Usage().Keys; n > 64*2 {
		t.Errorf("%d leases, want at most 64", n)
	}
	s.clock.forward(limit.LeaseTime)
	l.Sweep()
	if n := l.Usage().Keys; n != 0 {
		t.Errorf("%d leases after their time", n)
	}
	if d := l.Peek("0", 0); d.Remaining > 90 {
		t.Errorf("%d left: a lease that ended was given back", d.Remaining)
	}
}

func TestHybridBasics(t *testing.T) {
	s := newSimulator(t)
	l := hybrids(t, s, 1, bucketOptions(1, 24*time.Hour, 3))[0]
	if n := granted(l, "a", 9, 1); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
	if err := l.Reset("a"); err != nil || granted(l, "a", 9, 1) != 3 {
		t.Errorf("reset: %v", err)
	}
	if d := l.Take("b", 3); !d.OK {
		t.Errorf("a whole burst: %+v", d)
	}
	l.Return("b", 1)
	if d := l.Take("b", 1); !d.OK {
		t.Errorf("returned: %+v", d)
	}
	if d := l.Take("c", 0); !d.OK || d.Remaining != 3 {
		t.Errorf("asked: %+v", d)
	}
	if d := l.Take("c", 4); d.OK || d.RetryAfter != limit.Never {
		t.Errorf("more than ever: %+v", d)
	}
}
