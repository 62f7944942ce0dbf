package conf

import (
	"fmt"
	"strings"
	"time"
)

// Window is when a route is open. Its zero value is always.
type Window struct {
	Pos    Pos
	After  time.Time // zero: no beginning
	Before time.Time // zero: no end
	// From and To are times of day in Zone, as minutes since midnight; To may lie before From, over midnight. Both are
	// 0 when the whole day is meant.
	From, To int
	Zone     string // an IANA name; "UTC" unless it was written
}

// IsZero tells whether the window is always open.
func (w Window) IsZero() bool {
	return w.After.IsZero() && w.Before.IsZero() && w.From == 0 && w.To == 0
}

var windowSection = section[Window]{
	instant("after", func(w *Window) *time.Time { return &w.After }),
	instant("before", func(w *Window) *time.Time { return &w.Before }),
	custom("daily", func(b *binder, key string, v Value, w *Window) {
		s, ok := b.text(key, v)
		if !ok {
			return
		}
		from, to, err := parseDaily(s)
		if err != nil {
			b.errs.Add(v.Pos, key, "%s", err)
			return
		}
		w.From, w.To = from, to
	}),
	text("zone", func(w *Window) *string { return &w.Zone }, timeZone),
}

// instant is a key that holds a moment: a string of RFC 3339 or a TOML date-time with its offset.
func instant[T any](key string, at func(*T) *time.Time) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		switch x := v.V.(type) {
		case time.Time:
			if !strings.HasSuffix(x.Location().String(), "-local") {
				*at(into) = x
				return
			}
		case string:
			if when, err := time.Parse(time.RFC3339, x); err == nil {
				*at(into) = when
				return
			}
		}
		b.wants(key, v, `a time with its offset such as "2026-01-01T00:00:00Z"`)
	}}
}

// parseDaily reads "08:00-18:00".
func parseDaily(text string) (from, to int, err error) {
	begin, end, ok := strings.Cut(text, "-")
	from, ok1 := minuteOfDay(begin)
	to, ok2 := minuteOfDay(end)
	switch {
	case !ok || !ok1 || !ok2:
		return 0, 0, fmt.Errorf(`%q is no time of day: write "08:00-18:00"`, shorten(text))
	case from == to || from == to%(24*60) && from == 0:
		return 0, 0, fmt.Errorf("%q begins where it ends: leave the key away for the whole day", text)
	}
	return from, to, nil
}

func minuteOfDay(text string) (int, bool) {
	if text == "24:00" {
		return 24 * 60, true
	}
	if t, err := time.Parse("15:04", text); err == nil && len(text) == 5 {
		return t.Hour()*60 + t.Minute(), true
	}
	return 0, false
}

func timeZone(text string) string {
	if _, err := time.LoadLocation(text); err != nil || text == "" || text == "Local" {
		return fmt.Sprintf(`%q is no time zone: write an IANA name such as "Europe/Berlin"`, shorten(text))
	}
	return ""
}

func (b *binder) checkWindow(key string, w *Window) {
	if !w.After.IsZero() && !w.Before.IsZero() && !w.After.Before(w.Before) {
		b.errs.Add(w.Pos, key, "is never open, because before is not later than after")
	}
	if b.written(key+".zone") && !b.written(key+".daily") {
		b.errs.Add(b.pos[key+".zone"], key+".zone", "only counts for daily: write daily as well or take it away")
	}
	if w.Zone == "" {
		w.Zone = "UTC"
	}
}
