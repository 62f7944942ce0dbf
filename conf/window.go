package conf

import (
	"fmt"
	"strings"
	"time"
)

// Window is when a route is open: all that is set must hold. Its zero value is always open.
type Window struct {
	Pos    Pos
	After  time.Time // zero: no beginning
	Before time.Time // zero: no end
	Daily  string    // "08:00-18:00"; "22:00-06:00" spans midnight; empty: the whole day
	Zone   string    // IANA name of the zone of Daily; empty: UTC
}

// IsZero tells whether the window is always open.
func (w Window) IsZero() bool {
	return w.After.IsZero() && w.Before.IsZero() && w.Daily == ""
}

// String gives the window in one line; empty when it is always open.
func (w Window) String() string {
	var parts []string
	if !w.After.IsZero() {
		parts = append(parts, "after "+w.After.Format(time.RFC3339))
	}
	if !w.Before.IsZero() {
		parts = append(parts, "before "+w.Before.Format(time.RFC3339))
	}
	if w.Daily != "" {
		parts = append(parts, strings.TrimSpace("daily "+w.Daily+" "+w.Zone))
	}
	return strings.Join(parts, " ")
}

var windowSection = section[Window]{
	instant("after", func(w *Window) *time.Time { return &w.After }),
	instant("before", func(w *Window) *time.Time { return &w.Before }),
	text("daily", func(w *Window) *string { return &w.Daily }, daily),
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

// daily checks "08:00-18:00".
func daily(text string) string {
	begin, end, ok := strings.Cut(text, "-")
	from, err1 := time.Parse("15:04", begin)
	to, err2 := time.Parse("15:04", end)
	switch {
	case !ok || err1 != nil || err2 != nil || len(begin) != 5 || len(end) != 5:
		return fmt.Sprintf(`%q is no time of day: write "08:00-18:00"`, shorten(text))
	case from.Equal(to):
		return fmt.Sprintf("%q begins where it ends: leave the key away for the whole day", text)
	}
	return ""
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
}
