package limit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

func TestWindowsFollowTheCalendarOfTheirZone(t *testing.T) {
	tests := []struct {
		unit             limit.Unit
		zone, at         string
		begin, end, name string
	}{
		{limit.Minute, "UTC", "2024-02-29T12:34:56Z", "2024-02-29T12:34:00Z", "2024-02-29T12:35:00Z", "minute"},
		{limit.Hour, "Asia/Kolkata", "2024-01-01T00:10:00Z", "2023-12-31T23:30:00Z", "2024-01-01T00:30:00Z", "hour of a zone with half an hour"},
		{limit.Hour, "Europe/Berlin", "2024-10-27T01:30:00Z", "2024-10-27T01:00:00Z", "2024-10-27T02:00:00Z", "second of two hours with one name"},
		{limit.Day, "Europe/Berlin", "2024-03-31T10:00:00Z", "2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z", "day of 23 hours"},
		{limit.Day, "Europe/Berlin", "2024-10-27T10:00:00Z", "2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z", "day of 25 hours"},
		{limit.Day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", "day without midnight"},
		{limit.Day, "America/Sao_Paulo", "2018-11-04T02:30:00Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "day before it"},
		{limit.Week, "UTC", "2024-03-03T23:59:59Z", "2024-02-26T00:00:00Z", "2024-03-04T00:00:00Z", "Sunday ends the week"},
		{limit.Week, "UTC", "2024-03-04T00:00:00Z", "2024-03-04T00:00:00Z", "2024-03-11T00:00:00Z", "Monday begins it"},
		{limit.Month, "UTC", "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z", "leap February"},
		{limit.Month, "Pacific/Auckland", "2023-12-31T11:00:00Z", "2023-12-31T11:00:00Z", "2024-01-31T11:00:00Z", "new year there"},
	}
	for _, test := range tests {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := test.unit.Around(at.In(zone))
		if b, e := begin.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339); b != test.begin || e != test.end {
			t.Errorf("%s: %s to %s, want %s to %s", test.name, b, e, test.begin, test.end)
		}
	}
}

func TestEveryMomentLiesInItsWindow(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2010, time.January, 1, 0, 0, 0, 0, time.UTC)
		for range 20000 {
			at = at.Add(6*time.Hour + 17*time.Minute + 13*time.Second + 7)
			for u := limit.Minute; u <= limit.Month; u++ {
				begin, end := u.Around(at.In(zone))
				if begin.After(at) || !end.After(at) {
					t.Fatalf("%s, %s: %s to %s for %s", name, u, begin, end, at)
				}
				if next, _ := u.Around(end); !next.Equal(end) && u != limit.Hour && u != limit.Minute {
					t.Fatalf("%s, %s: the window after %s begins at %s", name, u, end, next)
				}
			}
		}
	}
}

// wallAndClock makes a quota whose two clocks a test moves apart.
func wallAndClock(t *testing.T, unit limit.Unit, count int64) (q *limit.Quota, c *clock, wall *time.Time) {
	c = new(clock)
	now := time.Date(2024, time.May, 15, 12, 0, 0, 0, time.UTC)
	q, err := limit.NewQuota(limit.QuotaOptions{Count: count, Unit: unit, Clock: c.read, Wall: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return q, c, &now
}

func TestStepsOfTheClockMintNothingAndLockNobodyOut(t *testing.T) {
	q, c, wall := wallAndClock(t, limit.Hour, 3)
	pass := func(d time.Duration) { c.forward(d); *wall = wall.Add(d) }
	granted := func() int { return granted(q, "a", 9, 1) }
	if n := granted(); n != 3 {
		t.Fatalf("%d passed", n)
	}
	for range 5 { // back and forth over the border of a window
		*wall = wall.Add(-time.Hour)
		pass(2 * time.Second)
		if n := granted(); n != 0 {
			t.Errorf("%d passed after a step back", n)
		}
		*wall = wall.Add(time.Hour)
		pass(2 * time.Second)
		if n := granted(); n != 0 {
			t.Errorf("%d passed when the step was taken back", n)
		}
	}
	*wall = wall.Add(-10 * time.Hour)
	waited := time.Duration(0)
	for ; granted() == 0; waited += time.Minute {
		pass(time.Minute)
		if waited > 2*time.Hour {
			t.Fatal("locked out for more than twice the window")
		}
	}
	*wall = wall.Add(72 * time.Hour) // the machine slept
	pass(2 * time.Second)
	if n := granted(); n != 3 {
		t.Errorf("%d passed after a long sleep, want 3", n)
	}
}

func TestQuotaForgetsWindowsThatAreOver(t *testing.T) {
	q, c, wall := wallAndClock(t, limit.Hour, 3)
	for i := range 1000 {
		q.Take(strconv.Itoa(i), 1)
	}
	if n := q.Usage().Keys; n != 1000 {
		t.Errorf("%d keys", n)
	}
	c.forward(time.Hour)
	*wall = wall.Add(time.Hour)
	q.Sweep()
	if n := q.Usage().Keys; n != 0 {
		t.Errorf("%d keys of a window that is over", n)
	}
}

func TestQuotaAtItsCeilingHoldsTheLimit(t *testing.T) {
	q, err := limit.NewQuota(limit.QuotaOptions{Count: 3, Unit: limit.Month, Ceiling: 640, Clock: new(clock).read, Wall: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	q.Take("early", 3)
	passed := 0
	for i := range 10000 {
		passed += granted(q, strconv.Itoa(i), 1, 3)
	}
	u := q.Usage()
	if u.Keys > 640 || passed > 640+64 || u.Overflowed == 0 {
		t.Errorf("%d passed, usage %+v", passed, u)
	}
	if q.Take("early", 1).OK {
		t.Error("a flood refilled somebody over the limit")
	}
}
