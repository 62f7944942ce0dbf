package limit_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

// cases hold in every world, wherever the state is kept. Those that need the time to move by hand are marked.
var cases = []struct {
	name  string
	moves bool
	run   func(t *testing.T, w world)
}{
	{"burst passes at once, whatever the key", false, burstPasses},
	{"decision tells limit, remaining, wait", false, decisionTells},
	{"cost is charged whole or not at all", false, costIsCharged},
	{"peek charges nothing", false, peekChargesNothing},
	{"returned tokens can be taken again, never more", false, returnedTokens},
	{"reset makes a key as good as new", false, resetMakesNew},
	{"other names count for themselves", false, namesCountApart},
	{"strange keys count for themselves", false, strangeKeys},
	{"a quota grants so much", false, quotaGrants},
	{"all charges none unless all grant", false, allChargesNone},
	{"first takes from the first with room", false, firstTakes},
	{"tiers have terms of their own", false, tiersHaveTerms},
	{"concurrent takes grant exactly the burst", false, concurrentTakes},
	{"slots are held until they are given back", false, slotsAreHeld},
	{"slots have a cost and are given back in parts", false, slotsHaveCosts},
	{"never more than the slots at once", false, neverMoreThanSlots},
	{"a changed number of slots applies at once", false, changedSlots},
	{"waiting exactly the wait passes", true, waitingPasses},
	{"the rate is exact over a long time", true, rateIsExact},
	{"the slowest rate is exact", true, slowestRate},
	{"a quota begins anew with its window", true, quotaBeginsAnew},
	{"changed terms refill nothing", true, changedTerms},
}

func TestCasesHoldInMemory(t *testing.T) { runCases(t, local) }

func TestCasesHoldInRedis(t *testing.T) { runCases(t, simulated) }

func runCases(t *testing.T, in func(*testing.T) world) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := in(t)
			if c.moves && w.forward == nil {
				return // this world's time cannot be moved
			}
			c.run(t, w)
		})
	}
}

func bucketOptions(count int64, per time.Duration, burst int64) limit.Options {
	return limit.Options{Rate: rate(count, per), Burst: burst}
}

func granted(l limit.Limiter, key string, tries int, cost int64) (n int) {
	for range tries {
		if l.Take(key, cost).OK {
			n++
		}
	}
	return n
}

func burstPasses(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 7))
	for _, key := range []string{"a", "b", "user:tom", "203.0.113.7"} {
		if n := granted(l, key, 20, 1); n != 7 {
			t.Errorf("%s: %d passed, want 7", key, n)
		}
	}
}

func decisionTells(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(6, 144*time.Hour, 6))
	if d := l.Take("a", 1); !d.OK || d.Limit != 6 || d.Remaining != 5 || d.RetryAfter != 0 || d.Window != 144*time.Hour || near(d.Reset(), 24*time.Hour) {
		t.Errorf("first: %+v", d)
	}
	l.Take("a", 5)
	if d := l.Take("a", 1); d.OK || d.Limit != 6 || d.Remaining != 0 || near(d.RetryAfter, 24*time.Hour) || near(d.Reset(), 144*time.Hour) {
		t.Errorf("seventh: %+v", d)
	}
	if d := l.Take("a", 7); d.OK || d.RetryAfter != limit.Never || d.RetrySeconds() != 0 {
		t.Errorf("more than ever: %+v", d)
	}
	if d := l.Take("a", -1); d.OK || d.RetryAfter != limit.Never {
		t.Errorf("less than nothing: %+v", d)
	}
	if d := l.Take("a", 0); !d.OK || d.Remaining != 0 {
		t.Errorf("nothing: %+v", d)
	}
}

// near tells whether d is farther from want than the time that a test may take.
func near(d, want time.Duration) bool { return d > want || d < want-10*time.Minute }

func costIsCharged(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 10))
	for _, step := range []struct{ cost, left int64 }{{4, 6}, {7, 6}, {6, 0}, {1, 0}} {
		want := step.cost <= 6 && step.left != 0 || step.cost == 6
		if d := l.Take("a", step.cost); d.OK != want || d.Remaining != step.left {
			t.Errorf("cost %d: %+v, want %v and %d left", step.cost, d, want, step.left)
		}
	}
}

func peekChargesNothing(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 2))
	for range 5 {
		if d := l.Peek("a", 2); !d.OK || d.Remaining != 2 {
			t.Fatalf("%+v", d)
		}
	}
	l.Take("a", 1)
	if d := l.Peek("a", 2); d.OK || d.Remaining != 1 || near(d.RetryAfter, 24*time.Hour) {
		t.Errorf("after one: %+v", d)
	}
	if d := l.Peek("a", 3); d.OK || d.RetryAfter != limit.Never {
		t.Errorf("more than ever: %+v", d)
	}
}

func returnedTokens(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 5))
	l.Take("a", 5)
	l.Return("a", 2)
	if n := granted(l, "a", 10, 1); n != 2 {
		t.Errorf("%d passed, want the 2 that were returned", n)
	}
	l.Return("a", 100)
	l.Return("b", 100)
	for _, key := range []string{"a", "b"} {
		if n := granted(l, key, 10, 1); n != 5 {
			t.Errorf("%s: %d passed, want 5", key, n)
		}
	}
}

func resetMakesNew(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 3))
	l.Take("a", 3)
	l.Take("b", 3)
	if err := l.Reset("a"); err != nil {
		t.Fatal(err)
	}
	if d := l.Take("a", 3); !d.OK {
		t.Errorf("after the reset: %+v", d)
	}
	if d := l.Take("b", 1); d.OK {
		t.Errorf("another key: %+v", d)
	}
	if err := l.Reset("nobody"); err != nil {
		t.Error(err)
	}
}

func namesCountApart(t *testing.T, w world) {
	p := new(limit.Registry).Plan()
	a, b := w.declare(t, p, "a", bucketOptions(3, time.Hour, 3)), w.declare(t, p, "b", bucketOptions(3, time.Hour, 3))
	p.Commit()
	if n := granted(a, "ip", 5, 1); n != 3 {
		t.Errorf("a: %d", n)
	}
	if n := granted(b, "ip", 5, 1); n != 3 {
		t.Errorf("b: %d", n)
	}
}

func strangeKeys(t *testing.T, w world) {
	long := string(make([]byte, 100_000))
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 1))
	for _, key := range []string{"", "{}", "}", "{a}", "a}b", "#", "#1", "\x00\r\n", "ключ", long, long + "a"} {
		if n := granted(l, key, 3, 1); n != 1 {
			t.Errorf("%.20q: %d passed, want 1", key, n)
		}
	}
}

func quotaGrants(t *testing.T, w world) {
	l := w.limiter(t, limit.Options{Kind: limit.KindQuota, Burst: 5, Unit: limit.Month})
	if n := granted(l, "a", 9, 1); n != 5 {
		t.Errorf("%d passed, want 5", n)
	}
	d := l.Take("a", 1)
	if d.OK || d.Limit != 5 || d.Remaining != 0 || d.RetryAfter <= 0 || d.RetryAfter > 31*24*time.Hour || d.Window < 28*24*time.Hour {
		t.Errorf("refused: %+v", d)
	}
	if d := l.Take("a", 6); d.RetryAfter != limit.Never {
		t.Errorf("more than ever: %+v", d)
	}
	if d := l.Take("b", 5); !d.OK || d.Remaining != 0 {
		t.Errorf("all at once: %+v", d)
	}
	l.Return("b", 2)
	if d := l.Peek("b", 2); !d.OK || d.Remaining != 2 {
		t.Errorf("returned: %+v", d)
	}
	if err := l.Reset("b"); err != nil || !l.Take("b", 5).OK {
		t.Errorf("reset: %v", err)
	}
}

func allChargesNone(t *testing.T, w world) {
	p := new(limit.Registry).Plan()
	a, b := w.declare(t, p, "a", bucketOptions(1, 24*time.Hour, 5)), w.declare(t, p, "b", bucketOptions(1, 48*time.Hour, 3))
	quota := w.declare(t, p, "q", limit.Options{Kind: limit.KindQuota, Burst: 100, Unit: limit.Month})
	all := w.declare(t, p, "all", limit.Options{Kind: limit.KindAll, Members: []string{"a", "b", "q"}})
	p.Commit()
	if d := all.Take("k", 1); !d.OK || d.Limit != 3 || d.Remaining != 2 {
		t.Errorf("first: %+v, want what b says", d)
	}
	if n := granted(all, "k", 10, 1); n != 2 {
		t.Errorf("%d passed, want 2 more", n)
	}
	if d := all.Take("k", 1); d.OK || near(d.RetryAfter, 48*time.Hour) {
		t.Errorf("refused: %+v, want b's wait", d)
	}
	if d := a.Peek("k", 0); d.Remaining != 2 {
		t.Errorf("a has %d left, want 2: it was charged for what b refused", d.Remaining)
	}
	if d := b.Peek("k", 0); d.Remaining != 0 {
		t.Errorf("b has %d left", d.Remaining)
	}
	if d := quota.Peek("k", 0); d.Remaining != 97 {
		t.Errorf("the quota has %d left, want 97", d.Remaining)
	}
	all.Return("k", 1)
	if d := all.Peek("k", 1); !d.OK {
		t.Errorf("returned: %+v", d)
	}
	if err := all.Reset("k"); err != nil || granted(all, "k", 9, 1) != 3 {
		t.Errorf("reset: %v", err)
	}
}

func firstTakes(t *testing.T, w world) {
	p := new(limit.Registry).Plan()
	w.declare(t, p, "a", bucketOptions(100, 100*time.Hour, 100))
	b := w.declare(t, p, "b", bucketOptions(200, 100*time.Hour, 200))
	first := w.declare(t, p, "first", limit.Options{Kind: limit.KindFirst, Members: []string{"a", "b"}})
	p.Commit()
	if d := first.Take("k", 1); !d.OK || d.Limit != 300 || d.Remaining != 299 {
		t.Errorf("first: %+v", d)
	}
	if n := granted(first, "k", 98, 1); n != 98 {
		t.Errorf("%d of 98", n)
	}
	if d := b.Peek("k", 0); d.Remaining != 200 {
		t.Errorf("b was charged before a was empty: %d left", d.Remaining)
	}
	if n := granted(first, "k", 400, 1); n != 201 {
		t.Errorf("%d passed, want 201 more", n)
	}
	if d := first.Take("k", 1); d.OK || d.Remaining != 0 || near(d.RetryAfter, 30*time.Minute) {
		t.Errorf("refused: %+v, want the wait of the faster", d)
	}
}

func tiersHaveTerms(t *testing.T, w world) {
	o := bucketOptions(1, 24*time.Hour, 1)
	o.Tiers = map[string]limit.Terms{"gold": {Rate: rate(5, 24*time.Hour), Burst: 5}, "silver": {Rate: rate(3, 24*time.Hour), Burst: 3}}
	o.Keys = map[string]string{"user:tom": "gold"}
	l := w.limiter(t, o)
	if n := granted(l, "user:tom", 9, 1); n != 5 {
		t.Errorf("gold: %d passed", n)
	}
	if n := granted(l, "user:ann", 9, 1); n != 1 {
		t.Errorf("none: %d passed", n)
	}
	tiered := l.(*limit.Tiered)
	if n := granted(tiered.Tier("silver"), "user:eve", 9, 1); n != 3 {
		t.Errorf("silver: %d passed", n)
	}
	if tiered.Tier("lead") != nil {
		t.Error("there is a tier that nobody named")
	}
}

func concurrentTakes(t *testing.T, w world) {
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 100))
	others := []limit.Limiter{l}
	if w.another != nil {
		w2 := w.another(t)
		others = append(others, w2.limiter(t, bucketOptions(1, 24*time.Hour, 100)))
	}
	var passed atomic.Int64
	var takers sync.WaitGroup
	for i := range 20 {
		takers.Go(func() {
			for range 10 {
				if others[i%len(others)].Take("shared", 1).OK {
					passed.Add(1)
				}
			}
		})
	}
	takers.Wait()
	if passed.Load() != 100 {
		t.Errorf("%d passed, want 100", passed.Load())
	}
}

func waitingPasses(t *testing.T, w world) {
	for i, r := range []limit.Rate{rate(10, time.Minute), rate(7, time.Second), rate(3, 10*time.Second), rate(999983, time.Second), rate(1_000_000, time.Second)} {
		o := limit.Options{Rate: r, Burst: 4}
		l := w.limiter(t, o)
		for phase := range 10 {
			key := strconv.Itoa(i) + "/" + strconv.Itoa(phase)
			d := l.Take(key, 1)
			for d.OK {
				w.forward(time.Duration(phase) * r.Per / time.Duration(r.Count) / 13 / time.Microsecond * time.Microsecond)
				d = l.Take(key, 1)
			}
			if d.RetryAfter > time.Microsecond {
				w.forward(d.RetryAfter - time.Microsecond)
				if d := l.Take(key, 1); d.OK && d.RetryAfter > 2*time.Microsecond {
					t.Fatalf("%s, phase %d: passed before its time", r, phase)
				}
				d.RetryAfter = time.Microsecond
			}
			w.forward(d.RetryAfter)
			if now := l.Take(key, 1); !now.OK && d.RetryAfter > time.Microsecond {
				t.Fatalf("%s, phase %d: refused after exactly %s: %+v", r, phase, d.RetryAfter, now)
			}
		}
	}
}

func rateIsExact(t *testing.T, w world) {
	for _, r := range []limit.Rate{rate(7, time.Second), rate(3, 10*time.Second), rate(31, time.Minute), rate(999983, time.Second)} {
		l := w.limiter(t, limit.Options{Rate: r, Burst: r.Count})
		if !l.Take(r.String(), r.Count).OK {
			t.Fatal("refused a whole burst")
		}
		for period := range 20 {
			w.forward(r.Per)
			if d := l.Take(r.String(), r.Count); !d.OK {
				t.Fatalf("%s, period %d: %+v", r, period, d)
			}
			if l.Take(r.String(), 1).OK {
				t.Fatalf("%s, period %d: one token too many", r, period)
			}
			if period%5 == 4 {
				w.forward(1000 * time.Hour)
				if d := l.Take(r.String(), r.Count); !d.OK {
					t.Fatalf("%s rested, period %d: %+v", r, period, d)
				}
			}
		}
	}
}

func slowestRate(t *testing.T, w world) {
	const month = 31 * 24 * time.Hour
	l := w.limiter(t, bucketOptions(1, month, 2))
	l.Take("a", 2)
	for range 5 {
		w.forward(month - time.Microsecond)
		if d := l.Take("a", 1); d.OK || d.RetryAfter != time.Microsecond {
			t.Fatalf("a microsecond early: %+v", d)
		}
		w.forward(time.Microsecond)
		if d := l.Take("a", 1); !d.OK || d.Remaining != 0 {
			t.Fatalf("in time: %+v", d)
		}
	}
}

func quotaBeginsAnew(t *testing.T, w world) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	l := w.limiter(t, limit.Options{Kind: limit.KindQuota, Burst: 2, Unit: limit.Day, Zone: zone}) // it is 1 o'clock there
	for day := range 100 {
		if n := granted(l, "a", 5, 1); n != 2 {
			t.Fatalf("day %d: %d passed, want 2", day, n)
		}
		d := l.Take("a", 1)
		if day == 0 && d.RetryAfter != 23*time.Hour || d.RetryAfter > 25*time.Hour {
			t.Fatalf("day %d: %+v", day, d)
		}
		w.forward(d.RetryAfter - time.Millisecond)
		if l.Take("a", 1).OK {
			t.Fatalf("day %d: passed before midnight", day)
		}
		w.forward(time.Millisecond)
	}
}

func changedTerms(t *testing.T, w world) {
	r := new(limit.Registry)
	generation := func(count int64, per time.Duration, burst int64) limit.Limiter {
		p := r.Plan()
		l := w.declare(t, p, "a", bucketOptions(count, per, burst))
		p.Commit()
		return l
	}
	l := generation(3, time.Minute, 3)
	l.Take("a", 2)
	if l = generation(3, time.Minute, 3); l.Peek("a", 0).Remaining != 1 {
		t.Error("the same terms refilled it")
	}
	if l = generation(1, time.Minute, 1); l.Take("a", 1).OK {
		t.Error("lowered terms did not hold at once")
	}
	if l = generation(10, time.Second, 10); l.Peek("a", 0).Remaining < 7 || l.Peek("a", 0).Remaining > 9 {
		t.Errorf("raised: %d left, want what was owed to be owed", l.Peek("a", 0).Remaining)
	}
	w.forward(300 * time.Millisecond)
	if l.Peek("a", 0).Remaining != 10 {
		t.Error("raised: it does not fill at the new rate")
	}
}
