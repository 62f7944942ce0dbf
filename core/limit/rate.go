package limit

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Rate is Count tokens for each Per, kept as written: 3 for each 10 s is not 0.3 for each second in floating point.
// The zero value is no rate and is refused where a limiter is made.
type Rate struct {
	Count int64
	Per   time.Duration
}

// units names the periods that stand alone after the slash, as in "5/s".
var units = map[string]time.Duration{
	"ms": time.Millisecond,
	"s":  time.Second,
	"m":  time.Minute,
	"h":  time.Hour,
	"d":  24 * time.Hour,
}

// ParseRate reads "5" (for each second), "5/s", "0.1/s", "100/m", "3/10s" or "1000/1h30m"; d stands for 24 hours.
// The result is exact and in lowest terms where the count has a fraction. A rate that is not above 0 is an error.
func ParseRate(text string) (Rate, error) {
	number, period, found := strings.Cut(strings.TrimSpace(text), "/")
	per := time.Second
	if found {
		var err error
		if per, err = parsePeriod(strings.TrimSpace(period)); err != nil {
			return Rate{}, fmt.Errorf("rate %q: %w", text, err)
		}
	}
	r, err := scale(strings.TrimSpace(number), per)
	if err != nil {
		return Rate{}, fmt.Errorf("rate %q: %w", text, err)
	}
	return r, nil
}

// PerSecond is the rate of so many tokens a second, taken at its shortest decimal form: 0.1 is exactly one for each 10 s.
func PerSecond(count float64) (Rate, error) {
	if math.IsNaN(count) || math.IsInf(count, 0) {
		return Rate{}, fmt.Errorf("rate %v: want a number above 0", count)
	}
	return ParseRate(strconv.FormatFloat(count, 'f', -1, 64))
}

// String gives the rate in the form that ParseRate reads.
func (r Rate) String() string {
	for unit, per := range units {
		if r.Per == per {
			return strconv.FormatInt(r.Count, 10) + "/" + unit
		}
	}
	return strconv.FormatInt(r.Count, 10) + "/" + r.Per.String()
}

func parsePeriod(text string) (time.Duration, error) {
	if per, ok := units[text]; ok {
		return per, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err == nil && n > 0 && n <= math.MaxInt64/int64(units["d"]) {
			return time.Duration(n) * units["d"], nil
		}
	}
	per, err := time.ParseDuration(text)
	if err != nil || per <= 0 {
		return 0, fmt.Errorf(`period %q: want a unit or a duration above 0, as in "5/s", "100/m", "3/10s"`, text)
	}
	return per, nil
}

// scale turns a decimal number and a period into whole tokens for a longer period.
func scale(number string, per time.Duration) (Rate, error) {
	whole, fraction, _ := strings.Cut(number, ".")
	fraction = strings.TrimRight(fraction, "0")
	digits := whole + fraction
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return Rate{}, fmt.Errorf("count %q: want a decimal number above 0", number)
		}
	}
	if whole == "" {
		return Rate{}, fmt.Errorf("count %q: want a decimal number above 0", number)
	}
	count, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Rate{}, fmt.Errorf("count %q: too many digits", number)
	}
	if count == 0 {
		return Rate{}, fmt.Errorf("count %q: want a number above 0", number)
	}
	if fraction == "" {
		return Rate{Count: count, Per: per}, nil
	}
	power := int64(1)
	for range fraction {
		if power > math.MaxInt64/10 {
			return Rate{}, fmt.Errorf("count %q: too many digits", number)
		}
		power *= 10
	}
	g := gcd(count, power)
	count, power = count/g, power/g
	g = gcd(int64(per), count)
	count, per = count/g, per/time.Duration(g)
	if power > math.MaxInt64/int64(per) {
		return Rate{}, fmt.Errorf("count %q: too small for its period", number)
	}
	return Rate{Count: count, Per: per * time.Duration(power)}, nil
}

// span bounds each part of a bucket's time, so that the sum of two parts stays within an int64.
const span = 1 << 61

// fastest is the shortest time for one token that is accepted.
const fastest = time.Microsecond

// terms are a limiter's settings in the units of its time: one nanosecond is count units, one token is per units.
// With count and per in lowest terms every token is a whole number of units, whatever the rate.
type terms struct {
	count int64
	per   int64
	burst int64
	full  int64 // burst * per: how far ahead of now an empty bucket's arrival time lies
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
	return t, nil
}

// horizon is the time from an epoch on for which moments fit their units.
func (t *terms) horizon() time.Duration { return time.Duration(span / t.count) }

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
