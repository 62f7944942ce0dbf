package limit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Unit is a window of the calendar.
type Unit uint8

// The windows. Weeks begin on Monday (ISO 8601).
const (
	Minute Unit = iota + 1
	Hour
	Day
	Week
	Month
)

var unitNames = [...]string{Minute: "minute", Hour: "hour", Day: "day", Week: "week", Month: "month"}

// ParseUnit reads a window's name.
func ParseUnit(text string) (Unit, error) {
	for u, name := range unitNames {
		if name == text && name != "" {
			return Unit(u), nil
		}
	}
	return 0, fmt.Errorf("%q is no window of the calendar: minute, hour, day, week or month", text)
}

func (u Unit) String() string { return unitNames[u] }

// Around gives the window that a moment lies in: from begin on, before end. Both are in the moment's time zone, with its days of 23 and
// 25 hours.
func (u Unit) Around(t time.Time) (begin, end time.Time) {
	switch u {
	case Minute:
		return aligned(t, time.Minute)
	case Hour:
		return aligned(t, time.Hour)
	case Week:
		t = midnight(t, -(int(t.Weekday())+6)%7)
		return t, midnight(t, 7)
	case Month:
		return midnight(t, 1-t.Day()), firstOf(t.Year(), t.Month()+1, t.Location())
	}
	return midnight(t, 0), midnight(t, 1)
}

// aligned cuts by the wall clock of the zone, whose offset may have minutes.
func aligned(t time.Time, size time.Duration) (begin, end time.Time) {
	_, offset := t.Zone()
	into := time.Duration(t.Unix()+int64(offset)) % (size / time.Second) * time.Second
	begin = t.Add(-into - time.Duration(t.Nanosecond()))
	return begin, begin.Add(size)
}

// midnight is the first moment of the day so many days from t's.
func midnight(t time.Time, days int) time.Time {
	y, m, d := t.Date()
	return firstMoment(time.Date(y, m, d+days, 12, 0, 0, 0, t.Location()))
}

func firstOf(year int, month time.Month, zone *time.Location) time.Time {
	return firstMoment(time.Date(year, month, 1, 12, 0, 0, 0, zone))
}

// firstMoment is the first moment of noon's day. Where the clock is put forward at midnight that is 1 o'clock.
func firstMoment(noon time.Time) time.Time {
	y, m, d := noon.Date()
	t := time.Date(y, m, d, 0, 0, 0, 0, noon.Location())
	for t.Day() != d { // the library may choose the moment before the gap
		t = t.Add(15 * time.Minute)
	}
	return t
}

// wall is a clock of the calendar that steps of the system's clock cannot turn back: it goes with the monotonic clock and follows the
// system's. Forward it follows at once, since time may have passed unseen (a machine that slept). Backward it goes at half speed until the
// system's clock has caught up: no window comes twice, and none lasts more than twice as long as it would.
type wall struct {
	mono   func() time.Duration
	system func() time.Time

	mu   sync.Mutex
	last time.Time
	seen time.Duration // of mono, at last
}

func (w *wall) now() (time.Time, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mono, system := w.mono(), w.system()
	if w.last.IsZero() {
		w.last, w.seen = system, mono
		return w.last, mono
	}
	elapsed := max(mono-w.seen, 0)
	w.seen = max(mono, w.seen)
	if least := w.last.Add(elapsed / 2); system.Before(w.last.Add(elapsed)) && system.Before(least) {
		w.last = least
	} else {
		w.last = system
	}
	return w.last, mono
}

// calendar tells in which window now lies.
type calendar struct {
	unit Unit
	zone *time.Location
	wall *wall
	mu   sync.Mutex
	span atomic.Pointer[stretch]
}

// stretch is a window and the stretch of the monotonic clock in which it need not be looked up anew.
type stretch struct {
	begin, end time.Time
	from, to   time.Duration // of the monotonic clock; to is the window's end as far as is known
	recheck    time.Duration
}

// recheckAfter is how long the system's clock is not looked at.
const recheckAfter = time.Second

// current gives the window of the moment mono.
func (c *calendar) current(mono time.Duration) *stretch {
	if s := c.span.Load(); s != nil && mono < s.to && mono < s.recheck {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.span.Load(); s != nil && mono < s.to && mono < s.recheck {
		return s
	}
	now, at := c.wall.now()
	s := &stretch{from: at, recheck: at + recheckAfter}
	if old := c.span.Load(); old != nil && now.Before(old.end) {
		s.begin, s.end = old.begin, old.end
	} else {
		s.begin, s.end = c.unit.Around(now.In(c.zone))
	}
	s.to = at + s.end.Sub(now)
	c.span.Store(s)
	return s
}
