package limit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

func TestFullBucketsAreForgottenAndOthersKept(t *testing.T) {
	c := new(clock)
	b := bucket(t, limit.Options{Rate: rate(1, time.Second), Burst: 1, Clock: c.read})
	b.Take("slow", 1)
	for i := range 100000 {
		b.Take(strconv.Itoa(i), 1)
		if i%10 == 0 {
			c.forward(time.Microsecond)
		}
	}
	if b.Take("slow", 1).OK {
		t.Error("growth forgot a bucket that was not full")
	}
	c.forward(time.Second)
	b.Sweep()
	if n := b.Len(); n != 0 {
		t.Errorf("%d full buckets kept", n)
	}
	if !b.Take("slow", 1).OK {
		t.Error("refused although full again")
	}
}

func TestCeilingBoundsMemoryAndOverflowHoldsTheLimit(t *testing.T) {
	c := new(clock)
	const ceiling, burst = 6400, 3
	b := bucket(t, limit.Options{Rate: rate(1, time.Minute), Burst: burst, Ceiling: ceiling, Clock: c.read})
	b.Take("early", burst)
	granted := 0
	for i := range 20 * ceiling {
		if b.Take(strconv.Itoa(i), burst).OK {
			granted++
		}
	}
	if n := b.Len(); n > ceiling {
		t.Errorf("%d buckets, want at most %d", n, ceiling)
	}
	if granted > ceiling+64 { // one shared bucket a shard
		t.Errorf("granted %d of %d keys, want at most %d", granted, 20*ceiling, ceiling+64)
	}
	if b.Overflowed() == 0 {
		t.Error("overflow is not visible")
	}
	if b.Take("early", 1).OK {
		t.Error("a bucket was forgotten before it was full")
	}
	c.forward(time.Hour)
	for i := range 1000 {
		if key := "late" + strconv.Itoa(i); !b.Take(key, burst).OK || b.Take(key, 1).OK {
			t.Fatalf("%s: want a bucket of its own after the flood", key)
		}
	}
}

func TestKeyLeavingTheOverflowGetsNoSecondBurst(t *testing.T) {
	c := new(clock)
	b := bucket(t, limit.Options{Rate: rate(1, time.Minute), Burst: 2, Ceiling: 1, Clock: c.read})
	for i := range 1000 { // one bucket a shard
		b.Take(strconv.Itoa(i), 1)
	}
	c.forward(59 * time.Second)
	if !b.Take("key", 1).OK && b.Take("key", 1).RetryAfter > 61*time.Second {
		t.Fatal("overflow owes more than its burst")
	}
	for b.Take("key", 1).OK {
	}
	c.forward(2 * time.Second) // the shards' own buckets are full again and make room
	if d := b.Take("key", 2); d.OK {
		t.Errorf("two at once for a key that had just emptied its shared bucket: %+v", d)
	}
}

func TestTakeDoesNotAllocate(t *testing.T) {
	b := bucket(t, limit.Options{Rate: rate(1, time.Hour), Burst: 10})
	b.Take("key", 1)
	if n := testing.AllocsPerRun(1000, func() { b.Take("key", 1) }); n != 0 {
		t.Errorf("%v allocations a take", n)
	}
}
