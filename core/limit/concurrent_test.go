package limit_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

func TestConcurrentTakesGrantExactlyTheBurst(t *testing.T) {
	for round := range 20 {
		b := bucket(t, limit.Options{Rate: rate(1, time.Hour), Burst: 100})
		var granted atomic.Int64
		var workers, growth sync.WaitGroup
		stop := make(chan struct{})
		growth.Go(func() { // other keys make every shard grow meanwhile
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					b.Take(strconv.Itoa(i), 1)
				}
				if i%5000 == 0 {
					b.Sweep()
				}
			}
		})
		for range 50 {
			workers.Go(func() {
				for range 20 {
					if b.Take("shared", 1).OK {
						granted.Add(1)
					}
				}
			})
		}
		workers.Wait()
		close(stop)
		growth.Wait()
		if granted.Load() != 100 {
			t.Fatalf("round %d: granted %d, want 100", round, granted.Load())
		}
	}
}

func TestExactlyAsManyTakersAsTokensAllPass(t *testing.T) {
	for round := range 200 {
		b := bucket(t, limit.Options{Rate: rate(1, time.Hour), Burst: 64})
		var refused atomic.Int64
		var workers sync.WaitGroup
		for range 16 {
			workers.Go(func() {
				for range 4 {
					if !b.Take("shared", 1).OK {
						refused.Add(1)
					}
				}
			})
		}
		workers.Wait()
		if refused.Load() != 0 {
			t.Fatalf("round %d: %d refused although there were tokens for all", round, refused.Load())
		}
	}
}

// TestTakerWithAnOldMomentIsNotRefused lets somebody charge the bucket while another, who has read the clock earlier, is about to.
func TestTakerWithAnOldMomentIsNotRefused(t *testing.T) {
	for _, others := range []int{0, 200_000} { // a table that a processor keeps near, and one that it does not
		c := new(clock)
		var meanwhile func()
		b := bucket(t, limit.Options{Rate: rate(1, time.Second), Burst: 2, Clock: func() time.Duration {
			now := c.read()
			if do := meanwhile; do != nil {
				meanwhile = nil
				do()
			}
			return now
		}})
		for i := range others {
			b.Take(strconv.Itoa(i), 2)
		}
		b.Take("key", 2)
		c.forward(time.Minute) // it is full again, and not forgotten yet
		meanwhile = func() {
			c.forward(50)
			if d := b.Take("key", 1); !d.OK {
				t.Errorf("%d others: the first is refused: %+v", others, d)
			}
		}
		if d := b.Take("key", 1); !d.OK || d.Remaining != 0 {
			t.Errorf("%d others: the second is refused: %+v", others, d)
		}
		if d := b.Take("key", 1); d.OK || d.RetryAfter != time.Second {
			t.Errorf("%d others: the third has to wait for a second: %+v", others, d)
		}
	}
}

func TestSetUnderLoadNeverOversells(t *testing.T) {
	b := bucket(t, limit.Options{Rate: rate(1, time.Hour), Burst: 1000})
	var granted atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 2000 {
				if b.Take("shared", 1).OK {
					granted.Add(1)
				}
			}
		})
	}
	for i := range 200 {
		if err := b.Set(rate(int64(1+i%2), time.Hour), 1000); err != nil {
			t.Fatal(err)
		}
	}
	workers.Wait()
	if granted.Load() != 1000 {
		t.Errorf("granted %d, want 1000", granted.Load())
	}
}
