package limit_test

import (
	"slices"
	"strconv"
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
	r.Each(func(name string, _ limit.Limiter) { names = append(names, name) })
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
	r.Each(func(name string, _ limit.Limiter) {
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

func TestKeysThatChangeTheirTierGoOnOwing(t *testing.T) {
	c := new(clock)
	r := new(limit.Registry)
	generation := func(tier string) limit.Limiter {
		t.Helper()
		p := r.Plan()
		l, err := p.Declare("a", limit.Options{Rate: rate(2, time.Hour), Burst: 2, Clock: c.read,
			Tiers: map[string]limit.Terms{"gold": {Rate: rate(10, time.Hour), Burst: 10}, "lead": {Rate: rate(1, time.Hour), Burst: 1}},
			Keys:  map[string]string{"tom": tier}})
		if err != nil {
			t.Fatal(err)
		}
		p.Commit()
		return l
	}
	l := generation("gold")
	l.Take("tom", 4)
	l = generation("gold")
	if d := l.Take("tom", 0); d.Remaining != 6 {
		t.Errorf("the same tier: %d left", d.Remaining)
	}
	l = generation("lead")
	if l.Take("tom", 1).OK {
		t.Error("a lower tier refilled the key")
	}
	r.Each(func(name string, l limit.Limiter) {
		if u := l.(limit.Counted).Usage(); u.Refused != 1 {
			t.Errorf("%s: %+v", name, u)
		}
	})
}

func TestSweepForgetsWhatIsFullBitByBit(t *testing.T) {
	c := new(clock)
	r := new(limit.Registry)
	p := r.Plan()
	l, err := p.Declare("a", limit.Options{Rate: rate(1, time.Second), Burst: 1, Clock: c.read})
	if err != nil {
		t.Fatal(err)
	}
	p.Commit()
	for i := range 10000 {
		l.Take(strconv.Itoa(i), 1)
	}
	c.forward(time.Second)
	for range 64 {
		r.Sweep()
	}
	if n := l.(limit.Counted).Usage().Keys; n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestJoinsWantWhatIsThere(t *testing.T) {
	p := new(limit.Registry).Plan()
	for name, o := range map[string]limit.Options{
		"none":  {Kind: limit.KindAll},
		"away":  {Kind: limit.KindFirst, Members: []string{"x", "y"}},
		"slots": {Kind: limit.KindConcurrency},
		"quota": {Kind: limit.KindQuota, Burst: 1},
		"tier":  {Rate: rate(1, time.Second), Burst: 1, Tiers: map[string]limit.Terms{"a": {}}},
		"key":   {Rate: rate(1, time.Second), Burst: 1, Keys: map[string]string{"a": "b"}},
	} {
		if _, err := p.Declare(name, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
