package limit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

// generation declares limiters by name, all with the same rate, and commits.
func generation(t *testing.T, r *limit.Registry, bursts map[string]int64) *limit.Plan {
	t.Helper()
	p := r.Plan()
	for name, burst := range bursts {
		if _, err := p.Declare(name, limit.Options{Rate: rate(3, time.Hour), Burst: burst}); err != nil {
			t.Fatal(err)
		}
	}
	p.Commit()
	return p
}

func TestEqualSettingsUnderOtherNamesDoNotShare(t *testing.T) {
	p := generation(t, new(limit.Registry), map[string]int64{"a": 3, "b": 3})
	p.Get("a").Take("ip", 3)
	if d := p.Get("b").Take("ip", 0); d.Remaining != 3 {
		t.Errorf("b has %d left, want 3", d.Remaining)
	}
}

func TestReloadKeepsBucketsAndAppliesChangesAtCommit(t *testing.T) {
	r := new(limit.Registry)
	old := generation(t, r, map[string]int64{"a": 3, "gone": 3})
	old.Get("a").Take("ip", 2)

	p := r.Plan()
	a, err := p.Declare("a", limit.Options{Rate: rate(1, time.Hour), Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := old.Get("a").Take("ip", 0); d.Limit != 3 || d.Remaining != 1 {
		t.Errorf("before the commit: %+v, want 1 of 3 left", d)
	}
	p.Commit()
	if d := a.Take("ip", 1); d.OK || d.Limit != 1 {
		t.Errorf("after the commit: %+v, want a refusal by a limit of 1", d)
	}
	var names []string
	r.Each(func(name string, _ *limit.TokenBucket) { names = append(names, name) })
	if !slices.Equal(names, []string{"a"}) {
		t.Errorf("running limiters %v, want only a", names)
	}
	if d := old.Get("gone").Take("ip", 1); !d.OK {
		t.Errorf("a request of the old generation: %+v", d)
	}
	again := generation(t, r, map[string]int64{"a": 1, "gone": 3})
	if d := again.Get("gone").Take("ip", 0); d.Remaining != 3 {
		t.Errorf("a limiter that came back has %d left, want a new one", d.Remaining)
	}
}

func TestAbandonedPlanLeavesNoTrace(t *testing.T) {
	r := new(limit.Registry)
	running := generation(t, r, map[string]int64{"a": 3})
	p := r.Plan()
	if _, err := p.Declare("a", limit.Options{Rate: rate(9, time.Second), Burst: 9}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Declare("b", limit.Options{Rate: rate(9, time.Second), Burst: 9}); err != nil {
		t.Fatal(err)
	}
	if d := running.Get("a").Take("ip", 0); d.Limit != 3 {
		t.Errorf("limit is %d, want 3", d.Limit)
	}
	r.Each(func(name string, _ *limit.TokenBucket) {
		if name != "a" {
			t.Errorf("%s is running", name)
		}
	})
}

func TestDeclareRefusesWhatCannotBe(t *testing.T) {
	p := new(limit.Registry).Plan()
	if _, err := p.Declare("zero", limit.Options{Rate: rate(0, time.Second), Burst: 1}); err == nil || !strings.Contains(err.Error(), `limiter "zero"`) {
		t.Errorf("rate 0: got %v", err)
	}
	first, err := p.Declare("a", limit.Options{Rate: rate(1, time.Second), Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Declare("a", limit.Options{Rate: rate(1, time.Second), Burst: 1}); err != nil || again != first {
		t.Errorf("the same again: got %p, %v, want %p", again, err, first)
	}
	if _, err := p.Declare("a", limit.Options{Rate: rate(2, time.Second), Burst: 1}); err == nil {
		t.Error("other settings under a declared name were accepted")
	}
	if p.Get("unknown") != nil {
		t.Error("an undeclared limiter exists")
	}
}
