package limit_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

// clock is a clock that tests move by hand.
type clock struct{ now atomic.Int64 }

func (c *clock) read() time.Duration { return time.Duration(c.now.Load()) }

func (c *clock) forward(d time.Duration) { c.now.Add(int64(d)) }

func bucket(t testing.TB, o limit.Options) *limit.TokenBucket {
	t.Helper()
	b, err := limit.NewTokenBucket(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// plain is what most decisions are compared by.
func plain(d limit.Decision) limit.Decision {
	return limit.Decision{OK: d.OK, Unavailable: d.Unavailable, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter}
}

func rate(count int64, per time.Duration) limit.Rate { return limit.Rate{Count: count, Per: per} }

func TestBurstPassesAtOnceThenOneEachInterval(t *testing.T) {
	c := new(clock)
	b := bucket(t, limit.Options{Rate: rate(1, time.Second), Burst: 3, Clock: c.read})
	for round := range 50 {
		c.forward(time.Duration(round) * 37 * time.Millisecond)
		key := strconv.Itoa(round)
		passed := 0
		for range 10 {
			if b.Take(key, 1).OK {
				passed++
			}
		}
		if passed != 3 {
			t.Fatalf("round %d: %d passed at once, want 3", round, passed)
		}
		c.forward(time.Second)
		if !b.Take(key, 1).OK || b.Take(key, 1).OK {
			t.Fatalf("round %d: want exactly one after a second", round)
		}
	}
}

func TestDecisionTellsLimitRemainingAndWait(t *testing.T) {
	tests := []struct {
		name       string
		rate       limit.Rate
		burst      int64
		taken      int
		cost       int64
		want       limit.Decision
		retryAfter int64
	}{
		{"first of six a minute", rate(6, time.Minute), 6, 0, 1, limit.Decision{OK: true, Limit: 6, Remaining: 5}, 0},
		{"seventh of six a minute", rate(6, time.Minute), 6, 6, 1, limit.Decision{Limit: 6, RetryAfter: 10 * time.Second}, 10},
		{"second of a tenth a second", rate(1, 10*time.Second), 1, 1, 1, limit.Decision{Limit: 1, RetryAfter: 10 * time.Second}, 10},
		{"five a second", rate(5, time.Second), 10, 10, 1, limit.Decision{Limit: 10, RetryAfter: 200 * time.Millisecond}, 1},
		{"interval of a third of a second", rate(3, time.Second), 1, 1, 1, limit.Decision{Limit: 1, RetryAfter: 333333334}, 1},
		{"just above a second", rate(999999999, 1000000000*time.Second), 1, 1, 1, limit.Decision{Limit: 1, RetryAfter: 1000000002}, 2},
		{"cost of several", rate(1, time.Second), 10, 5, 7, limit.Decision{Limit: 10, Remaining: 5, RetryAfter: 2 * time.Second}, 2},
		{"cost of the whole burst", rate(1, time.Second), 10, 0, 10, limit.Decision{OK: true, Limit: 10}, 0},
		{"cost of nothing asks", rate(1, time.Second), 10, 3, 0, limit.Decision{OK: true, Limit: 10, Remaining: 7}, 0},
		{"asking a new key", rate(1, time.Second), 10, 0, 0, limit.Decision{OK: true, Limit: 10, Remaining: 10}, 0},
		{"asking an empty bucket", rate(1, time.Second), 2, 2, 0, limit.Decision{OK: true, Limit: 2}, 0},
		{"cost above the burst", rate(1, time.Second), 10, 0, 11, limit.Decision{Limit: 10, RetryAfter: limit.Never}, 0},
		{"cost below nothing", rate(1, time.Second), 10, 3, -1, limit.Decision{Limit: 10, RetryAfter: limit.Never}, 0},
		{"cost beyond all numbers", rate(1, time.Second), 10, 3, math.MinInt64, limit.Decision{Limit: 10, RetryAfter: limit.Never}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := bucket(t, limit.Options{Rate: test.rate, Burst: test.burst, Clock: new(clock).read})
			for range test.taken {
				b.Take("key", 1)
			}
			d := b.Take("key", test.cost)
			if got := plain(d); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if d.RetrySeconds() != test.retryAfter {
				t.Errorf("got Retry-After %d, want %d", d.RetrySeconds(), test.retryAfter)
			}
		})
	}
}

func TestWaitingExactlyRetryAfterPasses(t *testing.T) {
	for _, r := range []limit.Rate{rate(10, time.Minute), rate(7, time.Second), rate(3, 10*time.Second), rate(999983, time.Second)} {
		for phase := range 50 {
			c := new(clock)
			b := bucket(t, limit.Options{Rate: r, Burst: 10, Clock: c.read})
			d := b.Take("key", 1)
			for d.OK {
				c.forward(time.Duration(phase) * r.Per / time.Duration(r.Count) / 53)
				d = b.Take("key", 1)
			}
			whole := d.RetrySeconds()
			if whole < 1 || time.Duration(whole)*time.Second < d.RetryAfter {
				t.Fatalf("%s, phase %d: Retry-After %d for %s", r, phase, whole, d.RetryAfter)
			}
			c.forward(d.RetryAfter - 1)
			if b.Take("key", 1).OK {
				t.Fatalf("%s, phase %d: passed before %s", r, phase, d.RetryAfter)
			}
			c.forward(1)
			if !b.Take("key", 1).OK {
				t.Fatalf("%s, phase %d: refused after exactly %s", r, phase, d.RetryAfter)
			}
		}
	}
}

func TestRateIsExactOverALongTime(t *testing.T) {
	for _, r := range []limit.Rate{rate(7, time.Second), rate(3, 10*time.Second), rate(31, time.Minute), rate(999983, time.Second)} {
		t.Run(r.String(), func(t *testing.T) {
			c := new(clock)
			b := bucket(t, limit.Options{Rate: r, Burst: r.Count, Clock: c.read})
			for b.Take("key", 1).OK {
			}
			// Four hours and more: beyond the first horizon of the finest rate. The bucket refills whole in each period.
			for period := range 20 {
				c.forward(r.Per)
				if d := b.Take("key", r.Count); !d.OK {
					t.Fatalf("period %d: %+v", period, d)
				}
				if b.Take("key", 1).OK {
					t.Fatalf("period %d: one token too many", period)
				}
				if period%5 == 4 {
					c.forward(1000 * time.Hour)
					if d := b.Take("key", r.Count); !d.OK {
						t.Fatalf("rested, period %d: %+v", period, d)
					}
				}
			}
		})
	}
}

// TestBehavesLikeAPlainBucket compares with the obvious bucket, counted in whole tokens at whole intervals.
func TestBehavesLikeAPlainBucket(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := new(clock)
	b := bucket(t, limit.Options{Rate: rate(1, time.Second), Burst: 5, Clock: c.read})
	level, last := map[string]int64{}, map[string]time.Duration{}
	for step := range 20000 {
		key := strconv.Itoa(random.IntN(200))
		cost := random.Int64N(5)
		if _, ok := level[key]; !ok {
			level[key] = 5
		}
		level[key] = min(5, level[key]+int64((c.read()-last[key])/time.Second))
		last[key] = c.read()
		want := level[key] >= cost
		if want {
			level[key] -= cost
		}
		if d := b.Take(key, cost); d.OK != want || d.Remaining != level[key] {
			t.Fatalf("step %d, key %s, cost %d: got %+v, want %v with %d left", step, key, cost, d, want, level[key])
		}
		if random.IntN(20) == 0 {
			c.forward(time.Second)
		}
	}
}

// TestDecisionsAreExactAtAnyRate compares with numbers of any size.
func TestDecisionsAreExactAtAnyRate(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	compared := 0
	for range 3000 {
		r := limit.Rate{Count: 1 + random.Int64N(1<<random.IntN(20)), Per: time.Duration(1 + random.Int64N(1<<(10+random.IntN(42))))}
		burst := 1 + random.Int64N(1<<random.IntN(40))
		c := new(clock)
		b, err := limit.NewTokenBucket(limit.Options{Rate: r, Burst: burst, Clock: c.read})
		if err != nil {
			continue // the rate is too fast, or the burst is too much for it
		}
		owed, count, per := new(big.Int), big.NewInt(r.Count), big.NewInt(int64(r.Per)) // tokens owed, times per
		for range 10 {
			d, cost := time.Duration(random.Int64N(1+int64(r.Per))), 1+random.Int64N(burst)
			c.forward(d)
			if owed.Sub(owed, new(big.Int).Mul(big.NewInt(int64(d)), count)); owed.Sign() < 0 {
				owed.SetInt64(0)
			}
			over := new(big.Int).Mul(big.NewInt(cost-burst), per)
			over.Add(over, owed)
			want := limit.Decision{OK: over.Sign() <= 0, Limit: burst}
			if want.OK {
				owed.Add(owed, new(big.Int).Mul(big.NewInt(cost), per))
			} else {
				over.Sub(over, big.NewInt(1)).Div(over, count)
				want.RetryAfter = time.Duration(over.Int64() + 1)
			}
			left := new(big.Int).Mul(big.NewInt(burst), per)
			want.Remaining = left.Sub(left, owed).Div(left, per).Int64()
			compared++
			if got := plain(b.Take("key", cost)); got != want {
				t.Fatalf("%s, burst %d, cost %d: got %+v, want %+v", r, burst, cost, got, want)
			}
		}
	}
	if compared < 3000 {
		t.Errorf("only %d decisions compared", compared)
	}
}

func TestKeysThatLookAlikeCountForThemselves(t *testing.T) {
	const ceiling = 1 << 18
	b := bucket(t, limit.Options{Rate: rate(1, time.Hour), Burst: 1, Ceiling: ceiling})
	keys := map[string]bool{}
	for n := range 40 {
		keys[strings.Repeat("\x00", n)], keys[strings.Repeat("a", n)] = true, true
		for i := range n {
			for bit := range 8 {
				text := []byte(strings.Repeat("a", n))
				text[i] ^= 1 << bit
				keys[string(text)] = true
			}
		}
	}
	for i := range 50_000 {
		keys[strconv.Itoa(i)] = true
		keys[fmt.Sprintf("10.%d.%d.%d", i%7, i>>8&255, i&255)] = true
		keys[fmt.Sprintf("user:%016d", i)] = true
	}
	for key := range keys {
		if !b.Take(key, 1).OK {
			t.Fatalf("%q shares a bucket", key)
		}
	}
	if n := b.Len(); n != len(keys) || b.Overflowed() > 0 {
		t.Errorf("%d buckets for %d keys, %d without room: they are not spread evenly", n, len(keys), b.Overflowed())
	}
}

func TestSetAppliesAtOnceAndRefillsNothing(t *testing.T) {
	c := new(clock)
	b := bucket(t, limit.Options{Rate: rate(3, time.Minute), Burst: 3, Clock: c.read})
	set := func(r limit.Rate, burst int64) {
		t.Helper()
		if err := b.Set(r, burst); err != nil {
			t.Fatal(err)
		}
	}
	b.Take("a", 2)
	set(rate(3, time.Minute), 3)
	if d := b.Take("a", 0); d.Remaining != 1 {
		t.Errorf("same settings: %d left, want 1", d.Remaining)
	}
	set(rate(1, time.Minute), 1)
	if d := b.Take("a", 1); d.OK || d.Limit != 1 || d.RetryAfter != time.Minute {
		t.Errorf("lowered: %+v, want a wait of one minute", d)
	}
	if d := b.Take("fresh", 1); !d.OK {
		t.Errorf("lowered, fresh key: %+v", d)
	}
	set(rate(10, time.Second), 10)
	if d := b.Take("a", 0); d.Remaining != 9 {
		t.Errorf("raised: %d left, want 9", d.Remaining)
	}
	c.forward(100 * time.Millisecond)
	if d := b.Take("a", 0); d.Remaining != 10 {
		t.Errorf("raised, after one interval of the new rate: %d left, want 10", d.Remaining)
	}
	if err := b.Set(rate(0, time.Second), 1); err == nil {
		t.Error("a rate of 0 was accepted")
	}
	if d := b.Take("a", 0); d.Limit != 10 {
		t.Errorf("a refused Set changed the limit to %d", d.Limit)
	}
}

func TestImpossibleSettingsAreRefused(t *testing.T) {
	tests := []struct {
		rate  limit.Rate
		burst int64
		want  string
	}{
		{rate(0, time.Second), 1, "rate 0/s: want more than 0 tokens in more than 0 time"},
		{rate(-1, time.Second), 1, "rate -1/s: want more than 0 tokens in more than 0 time"},
		{rate(1, 0), 1, "rate 1/0s: want more than 0 tokens in more than 0 time"},
		{rate(1, time.Second), 0, "burst 0: want at least 1"},
		{rate(3000000, time.Second), 1, "rate 3000000/s: want at most one token a microsecond (1000000/s)"},
		{rate(1, 744*time.Hour), 3443, "burst 3443: at a rate of 1/744h0m0s want at most 1721"},
		{rate(1, math.MaxInt64), 1, "rate 1/2562047h47m16.854775807s: its period is too long"},
		{rate(86399999999, 24*time.Hour), 1, "rate 86399999999/d: its fraction is too fine, want a shorter period"},
	}
	for _, test := range tests {
		_, err := limit.NewTokenBucket(limit.Options{Rate: test.rate, Burst: test.burst})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s, %d: got error %v, want %s", test.rate, test.burst, err, test.want)
		}
	}
	for _, good := range []limit.Rate{rate(1000000, time.Second), rate(1, 744*time.Hour), rate(1, time.Microsecond)} {
		if _, err := limit.NewTokenBucket(limit.Options{Rate: good, Burst: 1721}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	b := bucket(t, limit.Options{Rate: rate(1, time.Hour), Burst: 2})
	for range 5 {
		b.Take("key", 1)
	}
	b.Take("key", 3)
	if n := b.Refused(); n != 4 {
		t.Errorf("%d refusals counted, want 4", n)
	}
}
