package limit_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moongate/moongate/core/limit"
)

func TestSlotsAreHeldUntilTheyAreGivenBack(t *testing.T) {
	c, err := limit.NewConcurrency(2)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n := granted(c, "a", 5, 1); n != 2 {
			t.Errorf("%d passed, want 2", n)
		}
		if d := c.Take("a", 1); d.OK || d.Limit != 2 || d.Remaining != 0 || d.RetrySeconds() != 1 {
			t.Errorf("refused: %+v", d)
		}
		if d := c.Take("b", 1); !d.OK || d.Remaining != 1 {
			t.Errorf("another key: %+v", d)
		}
		c.Return("a", 1)
		c.Return("a", 1)
		c.Return("b", 1)
	}
	c.Return("nobody", 5)
	if u := c.Usage(); u.Keys != 0 || u.Refused == 0 {
		t.Errorf("usage %+v", u)
	}
	c.Set(1)
	if n := granted(c, "a", 5, 1); n != 1 {
		t.Errorf("%d passed after the change, want 1", n)
	}
	if err := c.Reset("a"); err == nil {
		t.Error("slots were reset")
	}
}

func TestNeverMoreThanTheSlotsAtOnce(t *testing.T) {
	c, err := limit.NewConcurrency(5)
	if err != nil {
		t.Fatal(err)
	}
	var now, most atomic.Int64
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			for range 200 {
				if !c.Take("k", 1).OK {
					continue
				}
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				now.Add(-1)
				c.Return("k", 1)
			}
		})
	}
	callers.Wait()
	if most.Load() > 5 {
		t.Errorf("%d at once", most.Load())
	}
	if n := granted(c, "k", 9, 1); n != 5 {
		t.Errorf("%d slots are left, want 5", n)
	}
}
