package upstream_test

import (
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

func retrying(t *testing.T, o upstream.RetryOptions, prev *upstream.Upstream) *upstream.Upstream {
	t.Helper()
	u, err := upstream.New(upstream.Options{Name: "u", Balance: "round_robin", Endpoints: []upstream.Target{{URL: urlA, Weight: 1}, {URL: urlB, Weight: 1}, {URL: urlC, Weight: 1}}, Retry: o}, prev)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// spend takes retries until there are none.
func spend(u *upstream.Upstream) (n int) {
	for u.TakeRetry() {
		n++
	}
	return n
}

func TestTheBudgetOfRetriesComesWithRequestsAndLivesOnOverReloads(t *testing.T) {
	u := retrying(t, upstream.RetryOptions{Attempts: 1, Status: []int{503}, Budget: 20}, nil)
	if n := spend(u); n != 10 {
		t.Errorf("%d retries at first, want ten", n)
	}
	for range 24 {
		u.MayRetry("GET")
		u.MayRetry("POST") // which is never repeated, and earns nothing
	}
	if n := spend(u); n != 4 {
		t.Errorf("%d retries after 24 requests, want 4", n)
	}
	u = retrying(t, upstream.RetryOptions{Attempts: 1, Status: []int{503}, Budget: 50}, u)
	if u.Retried() != 14 || spend(u) != 0 {
		t.Errorf("%d after a reload, which has made new ones", u.Retried())
	}
	for range 1000 {
		u.MayRetry("GET")
	}
	if n := spend(u); n != 10 {
		t.Errorf("%d retries after quiet times, want ten", n)
	}
}

func TestWithoutAttemptsNothingIsRetried(t *testing.T) {
	u := retrying(t, upstream.RetryOptions{Status: []int{503}, Budget: 20}, nil)
	if u.MayRetry("GET") || u.Retries(503, 0) {
		t.Error("it is")
	}
}

func TestEndpointsThatWereTriedComeLast(t *testing.T) {
	u := retrying(t, upstream.RetryOptions{}, nil)
	var tried []*core.Endpoint
	for range 7 {
		a, err := u.Begin("", tried)
		if err != nil {
			t.Fatal(err)
		}
		a.Ended()
		for i, e := range tried {
			if e == a.Endpoint && (len(tried) < 3 || i == len(tried)-1) {
				t.Errorf("try %d goes to %s again", len(tried)+1, e)
			}
		}
		tried = append(tried, a.Endpoint)
	}
}
