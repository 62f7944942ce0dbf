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

func TestTakerWithAnOldMomentIsNotRefused(t *testing.T) {
	moments := []time.Duration{0, 0, 0, 100, 100, 50, 100}
	b := bucket(t, limit.Options{Rate: rate(1, time.Second), Burst: 2, Clock: func() time.Duration {
		now := moments[0]
		if len(moments) > 1 {
			moments = moments[1:]
		}
		return now
	}})
	b.Take("key", 1) // 0
	for len(moments) > 3 {
		b.Take("other", 0)
	}
	if d := b.Take("key", 1); !d.OK {
		t.Errorf("refused: %+v", d)
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
