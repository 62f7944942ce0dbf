package conf

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Rate is Count events in each Per, in lowest terms of what was written: "100/m" is {100, time.Minute}, 0.1 is
// {1, 10 * time.Second}. Both are above 0 in a checked rate.
type Rate struct {
	Count int64
	Per   time.Duration
}

const (
	// maxRate is the fastest rate, in events per second: beyond it a nanosecond is too coarse a step.
	maxRate = 1_000_000
	// maxSpan is the longest time a full bucket may take to fill, so that its arithmetic in int64 nanoseconds holds.
	maxSpan = time.Duration(1) << 62
)

// ParseRate reads "5/s", "100/m", "3/10s", "1/1m30s", or a number of events per second ("5", "0.1"). Units are ms, s, m,
// h and d. A rate of 0, a negative one and one above 1,000,000 per second are refused.
func ParseRate(text string) (Rate, error) {
	number, per, found := strings.Cut(text, "/")
	period := time.Second
	if found {
		var ok bool
		if period, ok = parsePeriod(per); !ok {
			return Rate{}, fmt.Errorf(`%q is no rate: write "5/s", "100/m", "3/10s" or a number per second`, text)
		}
	}
	if !isDecimal(number) {
		return Rate{}, fmt.Errorf(`%q is no rate: write "5/s", "100/m", "3/10s" or a number per second`, text)
	}
	count, ok := new(big.Rat).SetString(number)
	if !ok {
		return Rate{}, fmt.Errorf("%q is no rate", text)
	}
	return exactRate(count, period)
}

// RateOf is ParseRate for a number of events per second.
func RateOf(perSecond float64) (Rate, error) {
	text := strconv.FormatFloat(perSecond, 'g', -1, 64)
	count, ok := new(big.Rat).SetString(text)
	if !ok {
		return Rate{}, fmt.Errorf("%s is no rate: write a number per second above 0", text)
	}
	return exactRate(count, time.Second)
}

// Check tells what keeps a bucket of this rate from holding burst events; nil when nothing does.
func (r Rate) Check(burst int64) error {
	if burst < 1 {
		return fmt.Errorf("a burst of %d lets nothing through: it is at least 1", burst)
	}
	span := new(big.Int).Mul(big.NewInt(burst), big.NewInt(int64(r.Per)))
	if span.Div(span, big.NewInt(r.Count)).Cmp(big.NewInt(int64(maxSpan))) > 0 {
		return fmt.Errorf("at %s a burst of %d takes more than 146 years to fill: lower it or raise the rate", r, burst)
	}
	return nil
}

// PerSecond returns the rate as events per second, as near as a float comes.
func (r Rate) PerSecond() float64 { return float64(r.Count) / r.Per.Seconds() }

// String gives the form that ParseRate reads.
func (r Rate) String() string {
	for _, unit := range []struct {
		per  time.Duration
		name string
	}{{time.Second, "s"}, {time.Minute, "m"}, {time.Hour, "h"}, {24 * time.Hour, "d"}} {
		if r.Per == unit.per {
			return fmt.Sprintf("%d/%s", r.Count, unit.name)
		}
	}
	return fmt.Sprintf("%d/%s", r.Count, formatDuration(r.Per))
}

// exactRate turns count events per period into whole numbers.
func exactRate(count *big.Rat, period time.Duration) (Rate, error) {
	if count.Sign() == 0 {
		return Rate{}, fmt.Errorf("a rate of 0 lets nothing through: it is above 0")
	}
	if count.Sign() < 0 {
		return Rate{}, fmt.Errorf("a rate is above 0")
	}
	second := new(big.Rat).Mul(count, big.NewRat(int64(time.Second), int64(period)))
	if second.Cmp(big.NewRat(maxRate, 1)) > 0 {
		return Rate{}, fmt.Errorf("more than 1000000 events per second cannot be counted: lower the rate")
	}
	per := new(big.Int).Mul(count.Denom(), big.NewInt(int64(period)))
	if count.Num().IsInt64() && per.IsInt64() && per.Int64() <= int64(maxSpan) {
		return Rate{Count: count.Num().Int64(), Per: time.Duration(per.Int64())}, nil
	}
	const long = time.Duration(1_000_000_000) * time.Second
	events := new(big.Rat).Mul(second, big.NewRat(1_000_000_000, 1))
	whole := new(big.Int).Div(events.Num(), events.Denom())
	if whole.Sign() == 0 {
		return Rate{}, fmt.Errorf("less than one event in 30 years is no rate: raise it")
	}
	return Rate{Count: whole.Int64(), Per: long}, nil
}

// parsePeriod reads what stands behind the slash: a unit, a number of units, or a Go duration.
func parsePeriod(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	if text[0] < '0' || text[0] > '9' {
		text = "1" + text
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n == 0 || n > 36500 {
			return 0, false
		}
		return time.Duration(n) * 24 * time.Hour, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// isDecimal tells whether text is digits with at most one point; big.Rat reads more than that.
func isDecimal(text string) bool {
	digits, points := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			points++
		default:
			return false
		}
	}
	return digits > 0 && digits <= 40 && points <= 1
}
