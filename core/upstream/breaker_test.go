package upstream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/moongate/moongate/core/upstream"
)

// breaking is an upstream of two endpoints with that breaker, whose endpoints stay in.
func breaking(t *testing.T, b upstream.BreakerOptions, prev *upstream.Upstream) *upstream.Upstream {
	t.Helper()
	o := options(urlA, urlB)
	o.Health.Failures = 1 << 30
	if b.Window == 0 {
		b.Window = 10 * time.Second
	}
	if b.Open == 0 {
		b.Open = 10 * time.Second
	}
	b.Probes = max(b.Probes, 1)
	o.Breaker = b
	return open(t, o, prev)
}

// try makes one try and ends it; it reports whether the breaker let it through.
func try(t *testing.T, u *upstream.Upstream, end func(upstream.Attempt)) bool {
	t.Helper()
	a, err := u.Begin("", nil)
	if errors.Is(err, upstream.ErrBreakerOpen) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	end(a)
	return true
}

var (
	succeeds = upstream.Attempt.Succeeded
	fails    = upstream.Attempt.Failed
	ends     = upstream.Attempt.Ended
)

func state(u *upstream.Upstream) upstream.BreakerState {
	s, _, _ := u.Breaker()
	return s
}

func TestFailuresInARowOpenTheBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 3}, nil)
		for _, end := range []func(upstream.Attempt){fails, fails, succeeds, fails, ends, fails} {
			if !try(t, u, end) || state(u) != upstream.BreakerClosed {
				t.Fatal("it opened before three failures in a row")
			}
		}
		try(t, u, fails)
		if try(t, u, succeeds) || state(u) != upstream.BreakerOpen || u.Ready() != 0 {
			t.Fatalf("after three failures in a row it is %s, %d ready", state(u), u.Ready())
		}
		if _, err := u.BeginAt(u.Endpoints()[0]); !errors.Is(err, upstream.ErrBreakerOpen) {
			t.Errorf("an endpoint that a script has chosen is asked: %v", err)
		}
	})
}

func TestErrorsWithinAWindowOpenTheBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Errors: 50, Minimum: 10}, nil)
		for range 9 {
			try(t, u, fails)
		}
		if state(u) != upstream.BreakerClosed {
			t.Fatal("it opened before there were ten tries")
		}
		time.Sleep(11 * time.Second) // those are forgotten
		for i := range 100 {
			try(t, u, succeeds)
			if i%2 == 0 {
				try(t, u, fails)
			}
		}
		if state(u) != upstream.BreakerClosed {
			t.Fatal("a third of the tries failed and it is open")
		}
		for i := range 50 {
			if !try(t, u, fails) {
				t.Fatalf("it opened after %d of %d", 50+i, 150+i)
			}
		}
		if state(u) != upstream.BreakerOpen { // 100 of 200
			t.Fatal("half of the tries failed and it is closed")
		}
	})
}

func TestABreakerIsTriedAndClosesOrStaysOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 1, Probes: 2}, nil)
		try(t, u, fails)
		time.Sleep(10*time.Second - time.Millisecond)
		if try(t, u, succeeds) {
			t.Fatal("it let one through before its time was over")
		}
		time.Sleep(time.Millisecond)
		if state(u) != upstream.BreakerHalfOpen {
			t.Fatalf("it is %s", state(u))
		}
		first, second := begin(t, u), begin(t, u)
		if try(t, u, succeeds) {
			t.Fatal("more were let through than probes says")
		}
		first.Ended()
		third := begin(t, u)
		second.Failed()
		third.Succeeded() // began before it was opened anew
		if _, opened, _ := u.Breaker(); state(u) != upstream.BreakerOpen || opened != 2 {
			t.Fatalf("after one that failed it is %s, opened %d times", state(u), opened)
		}
		time.Sleep(10 * time.Second)
		if !try(t, u, succeeds) || state(u) != upstream.BreakerClosed {
			t.Fatal("one that was answered did not close it")
		}
		for range 5 {
			if !try(t, u, succeeds) {
				t.Fatal("it is closed and lets nobody through")
			}
		}
	})
}

func TestTriesFromBeforeItOpenedTellABreakerNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 2}, nil)
		late := begin(t, u)
		later := begin(t, u)
		try(t, u, fails)
		try(t, u, fails)
		late.Succeeded()
		if state(u) != upstream.BreakerOpen {
			t.Fatal("a late answer closed it")
		}
		time.Sleep(10 * time.Second)
		try(t, u, succeeds)
		later.Failed()
		if !try(t, u, fails) || state(u) != upstream.BreakerClosed {
			t.Fatal("a late failure counted")
		}
	})
}

func TestAProbeThatFailsAfterAnotherHasClosedABreakerIsOneFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 2, Probes: 2}, nil)
		try(t, u, fails)
		try(t, u, fails)
		time.Sleep(10 * time.Second)
		late, later := begin(t, u), begin(t, u)
		late.Succeeded()
		for range 5 {
			try(t, u, succeeds)
		}
		later.Failed()
		if state(u) != upstream.BreakerClosed {
			t.Fatal("one late failure opened a breaker that was closed")
		}
		if try(t, u, fails); state(u) != upstream.BreakerOpen {
			t.Fatal("the late failure did not count")
		}
	})
}

func TestAProbeThatLastsKeepsNobodyFromTryingABreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 1}, nil)
		try(t, u, fails)
		time.Sleep(10 * time.Second)
		slow := begin(t, u) // an upload whose client takes its time
		time.Sleep(10*time.Second - time.Millisecond)
		if try(t, u, succeeds) {
			t.Fatal("another was let through at once")
		}
		time.Sleep(time.Millisecond)
		if !try(t, u, ends) || try(t, u, succeeds) {
			t.Fatal("want one more each time that open has passed")
		}
		time.Sleep(10 * time.Second)
		if !try(t, u, fails) || state(u) != upstream.BreakerOpen {
			t.Fatal("nobody finds out while one lasts")
		}
		time.Sleep(10 * time.Second)
		if !try(t, u, succeeds) || state(u) != upstream.BreakerClosed {
			t.Fatalf("it is %s while one lasts", state(u))
		}
		slow.Failed() // from before it was opened anew
		if !try(t, u, succeeds) {
			t.Fatal("the one that lasted opened it")
		}
	})
}

func TestABreakerThatWasTakenAwayComesBackClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 1}, nil)
		before := begin(t, u)
		try(t, u, fails)
		u = breaking(t, upstream.BreakerOptions{Failures: 1}, breaking(t, upstream.BreakerOptions{}, u))
		before.Failed()
		if !try(t, u, succeeds) || state(u) != upstream.BreakerClosed {
			t.Fatalf("it is %s", state(u))
		}
	})
}

func TestABreakerLivesOnOverReloads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := breaking(t, upstream.BreakerOptions{Failures: 1}, nil)
		try(t, u, fails)
		u = breaking(t, upstream.BreakerOptions{Failures: 5, Open: time.Hour}, u)
		if try(t, u, succeeds) {
			t.Fatal("it was closed by a reload")
		}
		without := breaking(t, upstream.BreakerOptions{}, u)
		if _, _, ok := without.Breaker(); ok || !try(t, without, fails) || without.Ready() != 2 {
			t.Fatal("it holds where there is none")
		}
		time.Sleep(10 * time.Second)
		if !try(t, u, succeeds) || state(u) != upstream.BreakerClosed {
			t.Fatal("its time is over and it is not tried")
		}
	})
}

func TestWhoeverAsksIsToldOfOpeningAndClosingOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := options(urlA)
		var told []string
		o.Breaker = upstream.BreakerOptions{Failures: 2, Errors: 50, Minimum: 4, Window: 10 * time.Second, Open: time.Second, Probes: 1}
		o.Opened = func(why string) { told = append(told, why) }
		o.Closed = func() { told = append(told, "closed") }
		u := open(t, o, nil)
		var held []upstream.Attempt
		for range 4 {
			held = append(held, begin(t, u))
		}
		for _, a := range held {
			a.Failed()
		}
		time.Sleep(time.Second)
		try(t, u, fails)
		time.Sleep(time.Second)
		try(t, u, succeeds)
		for _, end := range []func(upstream.Attempt){succeeds, fails, succeeds, fails} {
			try(t, u, end)
		}
		want := []string{"2 failures in a row", "it failed again when it was tried", "closed", "2 of 4 requests within 10s failed"}
		if len(told) != len(want) {
			t.Fatalf("told %q", told)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("told %q, want %q", told[i], want[i])
			}
		}
	})
}
