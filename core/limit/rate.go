package limit

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"
)

// Rate is Count tokens for each Per, kept as written: 3 for each 10 s is not 0.3 for each second in floating point.
// The zero value is no rate and is refused where a limiter is made.
type Rate struct {
	Count int64
	Per   time.Duration
}

// String gives the rate as configurations write it: "5/s", "3/10s".
func (r Rate) String() string {
	per := r.Per.String()
	switch r.Per {
	case time.Second:
		per = "s"
	case time.Minute:
		per = "m"
	case time.Hour:
		per = "h"
	case 24 * time.Hour:
		per = "d"
	}
	return strconv.FormatInt(r.Count, 10) + "/" + per
}

const (
	// span bounds what a bucket may owe, in units: what it owes and what a take costs add up within an int64.
	span = 1<<62 - 1
	// reach bounds the moments that a table tells, in units: the farthest moment and a whole burst add up too.
	reach = 1 << 60
	// fastest is the shortest time for one token that is accepted.
	fastest = time.Microsecond
)

// terms are a limiter's settings in the units of its time: one nanosecond is count units, one token is per units.
// With count and per in lowest terms every token is a whole number of units, whatever the rate.
type terms struct {
	count int64
	per   int64
	burst int64
	full  int64 // burst * per: how far ahead of now an empty bucket's arrival time lies

	window time.Duration // in which an empty bucket fills, rounded up

	byCount, byPer divisor
}

// settle checks a rate and a burst and turns them into terms.
func settle(rate Rate, burst int64) (terms, error) {
	if rate.Count <= 0 || rate.Per <= 0 {
		return terms{}, fmt.Errorf("rate %s: want more than 0 tokens in more than 0 time", rate)
	}
	if burst < 1 {
		return terms{}, fmt.Errorf("burst %d: want at least 1", burst)
	}
	if rate.Count > int64(rate.Per/fastest) {
		return terms{}, fmt.Errorf("rate %s: want at most one token a microsecond (1000000/s)", rate)
	}
	g := gcd(rate.Count, int64(rate.Per))
	t := terms{count: rate.Count / g, per: int64(rate.Per) / g, burst: burst}
	if t.horizon() < time.Second {
		return terms{}, fmt.Errorf("rate %s: its fraction is too fine, want a shorter period", rate)
	}
	if burst > span/t.per {
		if span/t.per == 0 {
			return terms{}, fmt.Errorf("rate %s: its period is too long", rate)
		}
		return terms{}, fmt.Errorf("burst %d: at a rate of %s want at most %d", burst, rate, span/t.per)
	}
	t.full = burst * t.per
	t.byCount, t.byPer = divisorOf(t.count), divisorOf(t.per)
	t.window = time.Duration((t.full-1)/t.count + 1)
	return t, nil
}

// horizon is the time from an epoch on for which moments fit their units.
func (t *terms) horizon() time.Duration { return time.Duration(reach / t.count) }

// convert carries what a bucket owes from other terms over to these: as many tokens, at most the whole burst.
func (t *terms) convert(debt int64, from *terms) int64 {
	hi, lo := bits.Mul64(uint64(debt), uint64(t.per))
	if hi >= uint64(from.per) {
		return t.full
	}
	owed, rest := bits.Div64(hi, lo, uint64(from.per))
	if rest > 0 {
		owed++
	}
	return int64(min(owed, uint64(t.full)))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
