package route

import (
	"fmt"
	"strings"
	"time"

	"github.com/moongate/moongate/core"
)

const day = 24 * time.Hour

// window asks for a time.
type window struct {
	now           func() time.Time
	after, before time.Time // zero: no bound
	from, to      time.Duration
	daily         bool
	zone          *time.Location
}

func (w *window) cost() int { return costTime }

func (w *window) holds(*core.Exchange) bool {
	now := w.now()
	switch {
	case !w.after.IsZero() && now.Before(w.after), !w.before.IsZero() && !now.Before(w.before):
		return false
	case !w.daily:
		return true
	}
	hour, minute, second := now.In(w.zone).Clock()
	at := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	if w.from < w.to {
		return w.from <= at && at < w.to
	}
	return w.from <= at || at < w.to
}

func (w *window) sign() string {
	return fmt.Sprint(w.after.UnixNano(), w.before.UnixNano(), w.daily, w.from, w.to, w.zone)
}

func newWindow(c Window, now func() time.Time) (*window, error) {
	w := &window{now: now, zone: time.UTC}
	var err error
	if w.after, err = parseTime("time.after", c.After); err != nil {
		return w, err
	}
	if w.before, err = parseTime("time.before", c.Before); err != nil {
		return w, err
	}
	if c.After != "" && c.Before != "" && !w.after.Before(w.before) {
		return w, wrong("time.before", "comes before time.after, so that it never holds")
	}
	if c.Zone != "" {
		if w.zone, err = time.LoadLocation(c.Zone); err != nil {
			return w, wrong("time.zone", "%q is no time zone known here", c.Zone)
		}
		if c.Daily == "" {
			return w, wrong("time.zone", "is for time.daily alone")
		}
	}
	if c.Daily != "" {
		w.daily = true
		w.from, w.to, err = parseDaily(c.Daily)
	}
	return w, err
}

func parseTime(key, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, wrong(key, "%q is no time such as \"2026-01-31T08:00:00Z\"", s)
	}
	return t, nil
}

func parseDaily(s string) (from, to time.Duration, err error) {
	first, last, ok := strings.Cut(s, "-")
	if ok {
		var ok1, ok2 bool
		from, ok1 = parseClock(first)
		to, ok2 = parseClock(last)
		ok = ok1 && ok2 && from < day && from != to
	}
	if !ok {
		return 0, 0, wrong("time.daily", "%q is no span such as \"08:00-18:00\"", s)
	}
	return from, to, nil
}

func parseClock(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "24:00" {
		return day, true
	}
	t, err := time.Parse("15:04", s)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil
}
