package upstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/upstream"
)

// wantShare asks often and holds the part of the requests that goes to an endpoint against what it should be.
func wantShare(t *testing.T, u *upstream.Upstream, letter string, want float64) {
	t.Helper()
	const n = 4000
	got := float64(strings.Count(asked(t, u, n), letter)) / n
	if got < want-0.05 || got > want+0.05 { // six standard deviations at least
		t.Errorf("%s gets %.3f of the requests, want %.3f", letter, got, want)
	}
}

// live is an upstream that serves in the place of prev, which may be nil.
func live(t *testing.T, o upstream.Options, prev *upstream.Upstream) *upstream.Upstream {
	t.Helper()
	u := open(t, o, prev)
	u.Commit()
	return u
}

func slowly(balance string, urls ...string) upstream.Options {
	o := options(urls...)
	o.Balance, o.SlowStart = balance, 100*time.Second
	return o
}

func TestAnEndpointThatIsBackComesSlowlyToItsShare(t *testing.T) {
	for _, balance := range []string{"round_robin", "random", "smooth_weighted", "least_conn"} {
		t.Run(balance, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				u := open(t, slowly(balance, urlA, urlB), nil)
				fail(t, u, "a", 3)
				time.Sleep(10 * time.Second)
				probe := at(t, u, "a")
				probe.Succeeded()
				probe.Leave()
				wantShare(t, u, "a", 0.05)
				time.Sleep(50 * time.Second)
				wantShare(t, u, "a", 0.25)
				time.Sleep(50 * time.Second)
				wantShare(t, u, "a", 0.5)
			})
		})
	}
}

func TestWithoutASlowStartAnEndpointHasItsShareAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		fail(t, u, "a", 3)
		time.Sleep(10 * time.Second)
		at(t, u, "a").Succeeded()
		wantShare(t, u, "a", 0.5)
	})
}

func TestNewEndpointsComeSlowlyToTheirShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first := live(t, slowly("round_robin", urlA, urlB), nil)
		wantShare(t, first, "a", 0.5) // all of them are new: nobody waits for anybody
		tried, err := upstream.New(slowly("round_robin", urlA, urlB, urlC), first)
		if err != nil {
			t.Fatal(err)
		}
		wantShare(t, tried, "c", 0.33) // a generation that does not go live changes nothing
		second := live(t, slowly("round_robin", urlA, urlB, urlC), first)
		wantShare(t, second, "c", 0.033)
		time.Sleep(50 * time.Second)
		third := live(t, slowly("round_robin", urlC, urlA, urlB), second) // a reload that leaves it alone
		wantShare(t, third, "c", 0.167)
		time.Sleep(50 * time.Second)
		wantShare(t, third, "c", 0.33)
	})
}

func TestADrainedEndpointThatReturnsComesSlowlyToItsShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := slowly("smooth_weighted", urlA, urlB)
		o.Endpoints[0].Weight = 0
		first := live(t, o, nil)
		wantShare(t, first, "a", 0)
		second := live(t, slowly("smooth_weighted", urlA, urlB), first)
		wantShare(t, second, "a", 0.05)
	})
}

func TestTheOnlyReadyEndpointTakesAllHoweverNewItIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := live(t, slowly("round_robin", urlA, urlB), live(t, slowly("round_robin", urlB), nil))
		fail(t, u, "b", 3)
		wantShare(t, u, "a", 1)
	})
}

func TestSlowStartHoldsWithBalancersThatGoByLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := live(t, slowly("p2c_ewma", urlA, urlB), live(t, slowly("p2c_ewma", urlB), nil))
		b := at(t, u, "b")
		time.Sleep(time.Second)
		b.Succeeded()
		b.Leave()
		got := strings.Count(asked(t, u, 4000), "a") // who was never asked would win every time
		if got < 200 || got > 800 {
			t.Errorf("a new endpoint gets %d of 4000 requests at first, want about a tenth", got)
		}
	})
}
