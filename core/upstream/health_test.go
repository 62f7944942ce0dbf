package upstream_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

const urlA, urlB, urlC = "http://a.test:1", "http://b.test:1", "http://c.test:1"

func begin(t *testing.T, u *upstream.Upstream) upstream.Attempt {
	t.Helper()
	a, err := u.Begin("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// at begins tries until one goes to the endpoint with that letter; those to others tell nothing.
func at(t *testing.T, u *upstream.Upstream, letter string) upstream.Attempt {
	t.Helper()
	for range 100 {
		a := begin(t, u)
		if strings.HasPrefix(a.Endpoint.Authority, letter) {
			return a
		}
		a.Ended()
		a.Leave()
	}
	t.Fatalf("no try goes to %s", letter)
	return upstream.Attempt{}
}

// asked tells who of the endpoints is asked now, by letter.
func asked(t *testing.T, u *upstream.Upstream, n int) string {
	t.Helper()
	var letters strings.Builder
	for range n {
		a := begin(t, u)
		letters.WriteByte(a.Endpoint.Authority[0])
		a.Ended()
		a.Leave()
	}
	return letters.String()
}

func fail(t *testing.T, u *upstream.Upstream, letter string, times int) {
	t.Helper()
	for range times {
		a := at(t, u, letter)
		a.Failed()
		a.Leave()
	}
}

// bubble runs f where time stands still unless everybody sleeps.
func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestConsecutiveFailuresPutAnEndpointOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		fail(t, u, "a", 2)
		at(t, u, "a").Succeeded()
		fail(t, u, "a", 2)
		if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
			t.Fatalf("after failures that were not consecutive %s are asked", got)
		}
		fail(t, u, "a", 1)
		if got := asked(t, u, 4); got != "bbbb" || u.Ready() != 1 || u.IsReady(u.Endpoints()[0]) {
			t.Fatalf("after three failures %s are asked, %d ready", got, u.Ready())
		}
	})
}

func TestClientErrorsNeverPutAnEndpointOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		for range 100 {
			at(t, u, "a").Succeeded() // any status below 500
			at(t, u, "a").Ended()     // the client left
		}
		if u.Ready() != 2 {
			t.Error("an endpoint is out")
		}
	})
}

func TestAnEndpointComesBackByItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		fail(t, u, "a", 3)
		time.Sleep(10*time.Second - time.Millisecond)
		if got := asked(t, u, 4); got != "bbbb" {
			t.Fatalf("before its time is over %s are asked", got)
		}
		time.Sleep(time.Millisecond)
		probe := at(t, u, "a")
		if got := asked(t, u, 4); got != "bbbb" {
			t.Fatalf("beside its one probe %s are asked", got)
		}
		probe.Succeeded()
		if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
			t.Fatalf("after its probe was answered %s are asked", got)
		}
	})
}

func TestAProbeThatLastsKeepsNobodyFromTryingAnEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		fail(t, u, "a", 3)
		time.Sleep(10 * time.Second)
		slow := at(t, u, "a") // an upload whose client takes its time
		time.Sleep(10*time.Second - time.Millisecond)
		if got := asked(t, u, 4); got != "bbbb" {
			t.Fatalf("beside its one probe %s are asked", got)
		}
		time.Sleep(time.Millisecond)
		at(t, u, "a").Succeeded()
		if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
			t.Fatalf("after a later probe was answered %s are asked", got)
		}
		slow.Ended()
		if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
			t.Fatalf("after the one that lasted %s are asked", got)
		}
	})
}

func TestEveryEndingOfAProbeLeavesTheState(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(upstream.Attempt)
		want string // what is asked next among a and b
	}{
		{"answered", upstream.Attempt.Succeeded, "a"},
		{"failed", upstream.Attempt.Failed, ""},
		{"told nothing", upstream.Attempt.Ended, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				u := open(t, options(urlA, urlB), nil)
				fail(t, u, "a", 3)
				time.Sleep(10 * time.Second)
				c.end(at(t, u, "a"))
				if got := asked(t, u, 4); strings.Contains(got, "a") != (c.want == "a") {
					t.Fatalf("%s are asked", got)
				}
				time.Sleep(10 * time.Second)
				at(t, u, "a").Succeeded()
				if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
					t.Fatalf("in the end %s are asked", got)
				}
			})
		})
	}
}

func TestProbesAtOnceAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := options(urlA, urlB)
		o.Health.Probes = 2
		u := open(t, o, nil)
		fail(t, u, "a", 3)
		time.Sleep(10 * time.Second)
		first, second := at(t, u, "a"), at(t, u, "a")
		if got := asked(t, u, 4); got != "bbbb" {
			t.Fatalf("beside two probes %s are asked", got)
		}
		first.Succeeded()
		second.Failed()
		if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
			t.Fatalf("one failure of three after it came back: %s are asked", got)
		}
	})
}

func TestTheLastReadyEndpointStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		fail(t, u, "a", 3)
		fail(t, u, "b", 20)
		if got := asked(t, u, 2); got != "bb" {
			t.Fatalf("%s are asked", got)
		}
		one := open(t, options(urlC), nil)
		fail(t, one, "c", 20)
		if got := asked(t, one, 2); got != "cc" {
			t.Fatalf("%s are asked", got)
		}
	})
}

func TestAReloadNeverLeavesNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old := open(t, options(urlA, urlB), nil)
		fail(t, old, "a", 3)
		u := open(t, options(urlA), old)
		u.Commit()
		old.Retire(u)
		if got := asked(t, u, 2); got != "aa" || u.Ready() != 1 {
			t.Fatalf("%s are asked, %d ready", got, u.Ready())
		}
	})
}

func TestHealthSurvivesAReload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old := open(t, options(urlA, urlB), nil)
		pending := at(t, old, "a")
		fail(t, old, "a", 3)
		u := open(t, options(urlC, urlB, urlA), old)
		u.Commit()
		old.Retire(u)
		if got := asked(t, u, 6); strings.Contains(got, "a") {
			t.Fatalf("%s are asked: a was out before others were added", got)
		}
		pending.Failed() // a try of the old generation tells about the same endpoint
		time.Sleep(10 * time.Second)
		at(t, u, "a").Succeeded()
		if got := asked(t, u, 6); strings.Count(got, "a") != 2 {
			t.Fatalf("in the end %s are asked", got)
		}
	})
}

func TestAnEndpointThatAScriptChoosesIsProbedToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		a := u.Endpoints()[0]
		for range 3 {
			try, err := u.BeginAt(a)
			if err != nil {
				t.Fatal(err)
			}
			try.Failed()
		}
		time.Sleep(10 * time.Second)
		probe, _ := u.BeginAt(a)
		more, _ := u.BeginAt(a)
		more.Ended()
		probe.Succeeded()
		if got := asked(t, u, 4); strings.Count(got, "a") != 2 {
			t.Fatalf("%s are asked", got)
		}
		if _, err := u.BeginAt(&core.Endpoint{Upstream: "u", Index: 0}); err == nil {
			t.Error("an endpoint of another generation was taken")
		}
	})
}

func TestARetryAvoidsWhatFailedWhileThereIsAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := open(t, options(urlA, urlB), nil)
		for range 10 {
			first := begin(t, u)
			second, err := u.Begin("", []*core.Endpoint{first.Endpoint})
			if err != nil || second.Endpoint == first.Endpoint {
				t.Fatalf("the same endpoint again, %v", err)
			}
			first.Ended()
			second.Ended()
		}
		one := open(t, options(urlA), nil)
		first := begin(t, one)
		if second, err := one.Begin("", []*core.Endpoint{first.Endpoint}); err != nil || second.Endpoint != first.Endpoint {
			t.Errorf("the only endpoint is not asked again: %v", err)
		}
	})
}

func TestDrainedEndpointsAreNotAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := options(urlA, urlB)
		o.Endpoints[0].Weight = 0
		u := open(t, o, nil)
		if got := asked(t, u, 4); got != "bbbb" || u.Ready() != 1 || u.IsReady(u.Endpoints()[0]) {
			t.Errorf("%s are asked, %d ready", got, u.Ready())
		}
		o.Endpoints[1].Weight = 0
		u = open(t, o, u)
		if _, err := u.Begin("", nil); !errors.Is(err, upstream.ErrNoneReady) || u.Ready() != 0 {
			t.Errorf("all are drained: %v", err)
		}
	})
}

func TestSmoothWeightsStartAfreshWithNewWeights(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := options(urlA, urlB, urlC)
		o.Balance = "smooth_weighted"
		o.Endpoints[0].Weight = 5
		u := open(t, o, nil)
		if got := asked(t, u, 10); got != "aabacaaaab" {
			t.Fatalf("5:1:1 gave %s", got)
		}
		same := open(t, o, u)
		if got := asked(t, same, 4); got != "acaa" {
			t.Fatalf("a reload of the same went on with %s", got)
		}
		asked(t, same, 3)
		o.Endpoints[0].Weight = 1
		even := open(t, o, same)
		if got := asked(t, even, 12); got != "abcabcabcabc" {
			t.Fatalf("1:1:1 gave %s", got)
		}
	})
}

func TestEndpointsAreReadFromTheirURL(t *testing.T) {
	for _, c := range []struct{ url, address, authority string }{
		{"http://h:81", "h:81", "h:81"}, {"http://h", "h:80", "h"}, {"http://h:80/", "h:80", "h"}, {"http://[::1]:80", "[::1]:80", "[::1]"}, {"http://[::1]", "[::1]:80", "[::1]"},
	} {
		e := open(t, options(c.url), nil).Endpoints()[0]
		if e.Address != c.address || e.Authority != c.authority {
			t.Errorf("%s gave %s and %s", c.url, e.Address, e.Authority)
		}
	}
	for _, url := range []string{"h:80", "ftp://h", "http://", "http://h/path", "http://h:x"} {
		if _, err := upstream.New(options(url), nil); err == nil {
			t.Errorf("%s was taken", url)
		}
	}
}

func TestItIsToldWhenRequestsPutAnEndpointOutOrBringItBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told strings.Builder
		o := options(urlA, urlB)
		o.Out = func(e *core.Endpoint) { told.WriteString("out " + e.Authority + "\n") }
		o.Back = func(e *core.Endpoint) { told.WriteString("back " + e.Authority + "\n") }
		u := open(t, o, nil)
		fail(t, u, "a", 3)
		time.Sleep(10 * time.Second)
		at(t, u, "a").Failed() // still out: nothing new
		time.Sleep(10 * time.Second)
		at(t, u, "a").Succeeded()
		fail(t, u, "b", 2)
		at(t, u, "b").Succeeded()
		if want := "out a.test:1\nback a.test:1\n"; told.String() != want {
			t.Errorf("told %q, want %q", told.String(), want)
		}
	})
}
