package auth

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// unixNano turns a JSON number of seconds since 1970 (NumericDate, RFC 7519, section 2) into nanoseconds, exactly: rounded up
// to the next whole one, so that comparing a clock's nanoseconds with it is comparing with the number itself. Numbers beyond
// the range become the range's ends; nothing wraps.
func unixNano(number string) int64 {
	if len(number) <= 10 { // whole seconds of our days
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n <= math.MaxInt64/int64(time.Second) {
			return n * int64(time.Second)
		}
	}
	digits, negative := strings.CutPrefix(number, "-")
	exponent := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		exponent = clip(digits[i+1:])
		digits = digits[:i]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	ns, inexact := shift(digits, exponent-len(fraction)+9)
	switch {
	case negative:
		return -ns
	case inexact && ns < math.MaxInt64:
		return ns + 1
	default:
		return ns
	}
}

// shift gives digits times ten to the power, cut to a whole number and at the largest int64, and whether it was cut.
func shift(digits string, power int) (n int64, inexact bool) {
	size := len(digits) + power // digits before the point
	switch {
	case digits == "":
		return 0, false
	case size <= 0:
		return 0, true
	case size > 19:
		return math.MaxInt64, true
	case size >= len(digits):
		digits += strings.Repeat("0", size-len(digits))
	default:
		inexact = strings.Trim(digits[size:], "0") != ""
		digits = digits[:size]
	}
	n, err := strconv.ParseInt(digits, 10, 64) // at its largest beyond the range
	return n, inexact || err != nil
}

// clip reads an exponent; beyond a million it only matters that it is large.
func clip(text string) int {
	const most = 1_000_000
	n, err := strconv.Atoi(text)
	switch {
	case err == nil:
		return max(-most, min(most, n))
	case strings.HasPrefix(text, "-"):
		return -most
	default:
		return most
	}
}

// later adds without wrapping.
func later(ns int64, by time.Duration) int64 {
	sum := ns + int64(by)
	switch {
	case by > 0 && sum < ns:
		return math.MaxInt64
	case by < 0 && sum > ns:
		return math.MinInt64
	default:
		return sum
	}
}
