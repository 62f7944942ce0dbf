//go:build e2e

package limit_test

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

// slack is the time limit of calls on a machine that may be busy.
const slack = 30 * time.Second

func realWorld(t *testing.T, o redis.Options) world {
	o.Timeout = slack
	c := connect(t, o)
	w := world{redis: c, options: func(o *limit.Options) { o.Redis = c }}
	w.another = func(t *testing.T) world { return realWorld(t, o) }
	return w
}

func TestE2ECasesHoldInARealRedis(t *testing.T) {
	s := redistest.Start(t)
	runCases(t, func(t *testing.T) world {
		s.Do("FLUSHALL")
		return realWorld(t, redis.Options{Addresses: []string{s.Address}})
	})
}

func TestE2ECasesHoldForAnACLUser(t *testing.T) {
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "gateway", "on", ">secret", "~moongate:*", "+@read", "+@write", "+@scripting", "+time", "+hello", "+ping")
	s.Do("ACL", "SETUSER", "default", "off")
	w := realWorld(t, redis.Options{Addresses: []string{s.Address}, User: "gateway", Password: "secret"})
	burstPasses(t, w)
	quotaGrants(t, w)
}

func TestE2ECasesHoldInACluster(t *testing.T) {
	nodes := redistest.StartCluster(t)
	runCases(t, func(t *testing.T) world {
		for _, n := range nodes {
			n.Do("FLUSHALL")
		}
		return realWorld(t, redis.Options{Addresses: []string{nodes[0].Address, nodes[1].Address}, Cluster: true})
	})
}

func TestE2EGatewaysTogetherGrantTheLimit(t *testing.T) {
	s := redistest.Start(t)
	for _, hybrid := range []bool{false, true} {
		const gateways, burst, lease = 4, 500, 10
		var all []limit.Limiter
		for range gateways {
			w := realWorld(t, redis.Options{Addresses: []string{s.Address}})
			o := bucketOptions(1, 24*time.Hour, burst)
			o.Hybrid, o.Lease = hybrid, lease
			all = append(all, w.limiter(t, o))
		}
		s.Do("FLUSHALL")
		var passed atomic.Int64
		var takers sync.WaitGroup
		for i := range 32 {
			takers.Go(func() {
				for range 40 {
					if all[i%gateways].Take("hot", 1).OK {
						passed.Add(1)
					}
				}
			})
		}
		takers.Wait()
		n := passed.Load()
		if !hybrid && n != burst || hybrid && (n > burst || n < burst-2*gateways*lease) {
			t.Errorf("hybrid %v: %d passed, want %d", hybrid, n, burst)
		}
	}
}

func TestE2EWaitingPassesByTheServersClock(t *testing.T) {
	s := redistest.Start(t)
	l := (&world{options: func(*limit.Options) {}}).limiter(t, limit.Options{Rate: rate(5, time.Second), Burst: 2,
		Redis: realWorld(t, redis.Options{Addresses: []string{s.Address}}).redis})
	began, passed := time.Now(), 0
	for passed < 12 {
		if d := l.Take("a", 1); d.OK {
			passed++
		} else if d.RetryAfter > 200*time.Millisecond {
			t.Fatalf("%+v", d)
		} else {
			time.Sleep(d.RetryAfter)
		}
	}
	if took := time.Since(began); took < 1990*time.Millisecond {
		t.Errorf("12 passed in %s: two at once and five a second take two seconds", took)
	}
}

func TestE2ESentinelFailover(t *testing.T) {
	master, _, sentinel := redistest.StartSentinel(t)
	c := connect(t, redis.Options{Addresses: []string{sentinel.Address}, Sentinel: "mymaster", Timeout: time.Second})
	w := world{options: func(o *limit.Options) { o.Redis = c }}
	burstPasses(t, w)
	quotaGrants(t, w)
	o := bucketOptions(1, 24*time.Hour, 3)
	o.OnStoreError = limit.StoreErrorClosed
	l := w.limiter(t, o)
	master.Kill()
	redistest.Until(t, "the new master grants", func() bool { return l.Take("after the failover", 1).OK }, func() string { return "" })
	if n := granted(l, "another", 9, 1); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
}

func TestE2ERedisThatComesAndGoes(t *testing.T) {
	s := redistest.Start(t)
	c := connect(t, redis.Options{Addresses: []string{s.Address}, Timeout: 200 * time.Millisecond})
	w := world{options: func(o *limit.Options) { o.Redis = c }}
	o := bucketOptions(1, 24*time.Hour, 1000)
	o.OnStoreError = limit.StoreErrorClosed
	l := w.limiter(t, o)
	works := func() bool { return l.Take("a", 1).OK }
	for name, episode := range map[string]struct{ begin, end func() }{
		"killed": {s.Kill, s.Restart},
		"frozen": {s.Freeze, s.Thaw},
		"busy":   {func() { go s.Do("DEBUG", "SLEEP", "3") }, func() {}},
	} {
		redistest.Until(t, "it works before it is "+name, works, func() string { return "" })
		episode.begin()
		for i := range 2000 {
			if d := l.Take(strconv.Itoa(i), 1); !d.OK && !d.Unavailable {
				t.Fatalf("%s: %+v", name, d)
			}
		}
		episode.end()
		redistest.Until(t, "it works again after it was "+name, works, func() string { return "" })
	}
}

// BenchmarkE2ETakeInRedis is what so many callers at once, who do nothing else, get out of one redis-server on the same machine.
func BenchmarkE2ETakeInRedis(b *testing.B) {
	s := redistest.Start(b)
	c := connect(b, redis.Options{Addresses: []string{s.Address}, Timeout: slack})
	for _, run := range []struct {
		name          string
		callers, keys int
		hybrid        bool
	}{
		{"callers=1", 1, 1, false},
		{"callers=64", 64, 1, false},
		{"callers=64/keys=10000", 64, 10_000, false},
		{"callers=256", 256, 1, false},
		{"callers=256/keys=10000", 256, 10_000, false},
		{"callers=64/leases", 64, 1, true},
	} {
		b.Run(run.name, func(b *testing.B) {
			p := new(limit.Registry).Plan()
			l, err := p.Declare("api", limit.Options{Rate: rate(1, time.Second), Burst: 1_000_000_000, Redis: c, Hybrid: run.hybrid})
			if err != nil {
				b.Fatal(err)
			}
			p.Commit()
			keys := make([]string, run.keys)
			for i := range keys {
				keys[i] = "ip:10.0." + strconv.Itoa(i/256) + "." + strconv.Itoa(i%256)
			}
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			var callers sync.WaitGroup
			b.ResetTimer()
			for range run.callers {
				callers.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						began := time.Now()
						l.Take(keys[i%int64(len(keys))], 1)
						took[i] = time.Since(began)
					}
				})
			}
			callers.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
			for _, p := range []struct {
				name string
				of   float64
			}{{"p50-us", 0.5}, {"p99-us", 0.99}, {"p99.9-us", 0.999}} {
				b.ReportMetric(float64(took[int(p.of*float64(len(took)))])/1e3, p.name)
			}
		})
	}
}

func TestE2ESlotsOfADeadGatewayComeFree(t *testing.T) {
	s := redistest.Start(t)
	brief := func(o *limit.Options) { o.SlotTime = 2 * time.Second }
	alive, l := running(t, realWorld(t, redis.Options{Addresses: []string{s.Address}}), 3, brief)
	_, dead := running(t, realWorld(t, redis.Options{Addresses: []string{s.Address}}), 3, brief)
	if !l.Take("a", 1).OK || granted(dead, "a", 9, 1) != 2 {
		t.Fatal("three slots for both")
	}
	redistest.Until(t, "the dead gateway's slots are free", func() bool {
		alive.Sweep()
		return l.Peek("a", 2).OK
	}, func() string { return "" })
	l.Return("a", 1)
	redistest.Until(t, "all is forgotten", func() bool { return s.Do("EXISTS", "moongate:{a}:slots#slots") == "0" }, func() string { return "" })
}

// TestE2ESlotsOutliveAFailover: those that are held count at the new master, and what a gateway that died with the old one held comes free there.
func TestE2ESlotsOutliveAFailover(t *testing.T) {
	master, _, sentinel := redistest.StartSentinel(t)
	gateway := func() (*limit.Registry, limit.Limiter) {
		c := connect(t, redis.Options{Addresses: []string{sentinel.Address}, Sentinel: "mymaster", Timeout: time.Second})
		return running(t, world{options: func(o *limit.Options) { o.Redis = c }}, 3, func(o *limit.Options) {
			o.SlotTime, o.OnStoreError = 3*time.Second, limit.StoreErrorClosed
		})
	}
	alive, l := gateway()
	_, dead := gateway()
	if granted(l, "a", 2, 1) != 2 || !dead.Take("a", 1).OK {
		t.Fatal("three slots for both")
	}
	master.Kill()
	redistest.Until(t, "the new master knows the two that are held, and the dead gateway's is free", func() bool {
		alive.Sweep()
		d := l.Take("a", 1)
		if d.OK {
			l.Return("a", 1)
		}
		return d.OK && d.Remaining == 0
	}, func() string { return "" })
	l.Return("a", 2)
	redistest.Until(t, "all is free", func() bool {
		alive.Sweep()
		return l.Peek("a", 3).OK
	}, func() string { return "" })
}

// TestE2ESlotsOfAClusterComeBack: one of its servers dies with all it knew, and is started anew.
func TestE2ESlotsOfAClusterComeBack(t *testing.T) {
	nodes := redistest.StartCluster(t)
	c := connect(t, redis.Options{Addresses: []string{nodes[0].Address, nodes[1].Address}, Cluster: true, Timeout: time.Second})
	r, l := running(t, world{options: func(o *limit.Options) { o.Redis = c }}, 2, func(o *limit.Options) {
		o.SlotTime, o.OnStoreError = 6*time.Second, limit.StoreErrorClosed
	})
	const keys = 30 // on all three
	for i := range keys {
		if n := granted(l, strconv.Itoa(i), 3, 1); n != 2 {
			t.Fatalf("key %d: %d passed", i, n)
		}
	}
	nodes[2].Kill()
	for i := range keys {
		if d := l.Take(strconv.Itoa(i), 1); d.OK || d.Unavailable && d.RetryAfter <= 0 {
			t.Errorf("key %d: %+v", i, d)
		}
	}
	nodes[2].Restart()
	count := func(d func(limit.Decision) bool, cost int64) (n int) {
		r.Sweep()
		for i := range keys {
			if d(l.Peek(strconv.Itoa(i), cost)) {
				n++
			}
		}
		return n
	}
	redistest.Until(t, "all that is held counts again", func() bool {
		return count(func(d limit.Decision) bool { return !d.OK && !d.Unavailable && d.Remaining == 0 }, 1) == keys
	}, func() string { return "" })
	for i := range keys {
		l.Return(strconv.Itoa(i), 2)
	}
	redistest.Until(t, "all is free", func() bool { return count(func(d limit.Decision) bool { return d.OK }, 2) == keys }, func() string { return "" })
}

// TestE2ESlotsOutliveAFlush: whoever empties Redis gives away at most the limit once more, until those that are held are claimed again.
func TestE2ESlotsOutliveAFlush(t *testing.T) {
	s := redistest.Start(t)
	r, l := running(t, realWorld(t, redis.Options{Addresses: []string{s.Address}}), 3, func(o *limit.Options) { o.SlotTime = 3 * time.Second })
	if granted(l, "a", 9, 1) != 3 {
		t.Fatal("three slots")
	}
	s.Do("FLUSHALL")
	s.Do("SCRIPT", "FLUSH")
	if n := granted(l, "a", 9, 1); n != 3 {
		t.Errorf("%d passed after it, want 3", n)
	}
	redistest.Until(t, "six are held", func() bool {
		r.Sweep()
		return s.Do("ZCARD", "moongate:{a}:slots#slots") == "7" // six and their sum
	}, func() string { return "" })
	l.Return("a", 3)
	if l.Take("a", 1).OK {
		t.Error("a fourth passed while three are held")
	}
	l.Return("a", 3)
	redistest.Until(t, "all is free", func() bool {
		r.Sweep()
		return l.Peek("a", 3).OK && s.Do("EXISTS", "moongate:{a}:slots#slots") == "0"
	}, func() string { return "" })
}
