package limit_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moongate/moongate/core/limit"
)

func slotOptions(slots int64) limit.Options {
	return limit.Options{Kind: limit.KindConcurrency, Burst: slots, OnStoreError: limit.StoreErrorClosed}
}

func slotsAreHeld(t *testing.T, w world) {
	l := w.limiter(t, slotOptions(2))
	for range 3 {
		if n := granted(l, "a", 5, 1); n != 2 {
			t.Errorf("%d passed, want 2", n)
		}
		if d := l.Take("a", 1); d.OK || d.Unavailable || d.Limit != 2 || d.Remaining != 0 || d.RetrySeconds() != 1 {
			t.Errorf("refused: %+v", d)
		}
		if d := l.Peek("a", 1); d.OK || d.Remaining != 0 {
			t.Errorf("peek: %+v", d)
		}
		if d := l.Take("b", 1); !d.OK || d.Remaining != 1 {
			t.Errorf("another key: %+v", d)
		}
		l.Return("a", 1)
		l.Return("a", 1)
		l.Return("b", 1)
	}
	l.Return("nobody", 5)
	if u := l.(limit.Counted).Usage(); u.Keys != 0 || u.Refused == 0 {
		t.Errorf("usage %+v", u)
	}
	if err := l.Reset("a"); err == nil {
		t.Error("slots were reset")
	}
	if !limit.Slots(l) {
		t.Error("it says that it has no slots")
	}
}

func slotsHaveCosts(t *testing.T, w world) {
	l := w.limiter(t, slotOptions(5))
	for cost, want := range map[int64]limit.Decision{6: {RetryAfter: limit.Never}, -1: {RetryAfter: limit.Never}, 0: {OK: true}} {
		if d := l.Take("a", cost); d.OK != want.OK || d.RetryAfter != want.RetryAfter {
			t.Errorf("cost %d: %+v", cost, d)
		}
	}
	if d := l.Take("a", 4); !d.OK || d.Remaining != 1 {
		t.Errorf("four: %+v", d)
	}
	if d := l.Take("a", 2); d.OK || d.Remaining != 1 {
		t.Errorf("two more: %+v", d)
	}
	l.Return("a", 1)
	if d := l.Peek("a", 2); !d.OK || d.Remaining != 2 {
		t.Errorf("after one came back: %+v", d)
	}
	l.Return("a", 100)
	l.Return("a", 100)
	if n := granted(l, "a", 9, 1); n != 5 {
		t.Errorf("%d slots, want 5", n)
	}
}

func neverMoreThanSlots(t *testing.T, w world) {
	l := w.limiter(t, slotOptions(5))
	var now, most atomic.Int64
	var callers sync.WaitGroup
	for range 30 {
		callers.Go(func() {
			for range 40 {
				if !l.Take("k", 1).OK {
					continue
				}
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				now.Add(-1)
				l.Return("k", 1)
			}
		})
	}
	callers.Wait()
	if most.Load() > 5 {
		t.Errorf("%d at once", most.Load())
	}
	if n := granted(l, "k", 9, 1); n != 5 {
		t.Errorf("%d slots are left, want 5", n)
	}
}

func changedSlots(t *testing.T, w world) {
	var r limit.Registry
	declare := func(slots int64) limit.Limiter {
		p := r.Plan()
		l := w.declare(t, p, "slots", slotOptions(slots))
		p.Commit()
		return l
	}
	l := declare(3)
	if n := granted(l, "a", 9, 1); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
	if l = declare(1); l.Take("a", 1).OK {
		t.Error("one passed beyond fewer slots")
	}
	l.Return("a", 2)
	if l.Take("a", 1).OK {
		t.Error("one passed where one is held")
	}
	if l = declare(2); !l.Take("a", 1).OK {
		t.Error("the new slot was not granted")
	}
}
