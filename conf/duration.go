package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration in Go's form: "250ms", "5s", "1m30s", "2h". A number without a unit and a negative
// duration are refused; the error says what to write.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d < 0:
		return 0, fmt.Errorf("%q is negative: a duration is 0 or more", text)
	case err == nil && (text == "0" || text == "+0" || text == "-0"):
		return 0, fmt.Errorf(`%q has no unit: write "0s"`, text)
	case err == nil:
		return d, nil
	}
	if hint := durationHint(text); hint != "" {
		return 0, fmt.Errorf("%q is no duration: write %q", text, hint)
	}
	return 0, fmt.Errorf(`%q is no duration: write "250ms", "5s" or "1m30s"`, text)
}

// durationHint guesses what was meant by a text that is almost a duration.
func durationHint(text string) string {
	trimmed := strings.TrimSpace(text)
	end := strings.IndexFunc(trimmed, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	number, word := trimmed, ""
	if end >= 0 {
		number, word = trimmed[:end], strings.ToLower(strings.TrimSpace(trimmed[end:]))
	}
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return ""
	}
	switch word {
	case "", "s", "sec", "secs", "second", "seconds":
		return number + "s"
	case "ms", "msec", "millis", "millisecond", "milliseconds":
		return number + "ms"
	case "m", "min", "mins", "minute", "minutes":
		return number + "m"
	case "h", "hr", "hrs", "hour", "hours":
		return number + "h"
	case "d", "day", "days":
		if days, err := strconv.Atoi(number); err == nil && days < 36500 {
			return strconv.Itoa(days*24) + "h"
		}
	}
	return ""
}
