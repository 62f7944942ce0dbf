package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/store"
)

// clock is a store's time in the hands of a test.
type clock struct{ now core.Instant }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func newStore(capacity int64) (*store.Store, *clock) {
	c := &clock{now: 1}
	return store.New(store.Options{Capacity: capacity, Now: func() core.Instant { return c.now }}), c
}

func get(t *testing.T, s *store.Store, key string) lua.LValue {
	t.Helper()
	v, err := s.Get(key)
	if err != nil {
		t.Fatal(key, err)
	}
	return v
}

func set(t testing.TB, s *store.Store, key string, v lua.LValue, ttl time.Duration) {
	t.Helper()
	if err := s.Set(key, v, ttl); err != nil {
		t.Fatal(key, err)
	}
}

func TestValuesLiveAsLongAsTheyShould(t *testing.T) {
	s, clock := newStore(0)
	set(t, s, "ever", lua.LString("v"), 0)
	set(t, s, "short", lua.LTrue, time.Second)
	if _, err := s.Incr("count", 2, time.Second); err != nil {
		t.Fatal(err)
	}
	clock.pass(time.Second - 1)
	if left, ok := s.TTL("short"); get(t, s, "short") != lua.LTrue || left != 1 || !ok {
		t.Errorf("1 ns before its end it has %v, %v left", left, ok)
	}
	if n, err := s.Incr("count", 1, time.Hour); n != lua.LNumber(3) || err != nil {
		t.Errorf("count %v, %v", n, err)
	}
	if !s.Expire("ever", time.Minute) || s.Expire("nothing", time.Minute) {
		t.Error("Expire tells what is there wrongly")
	}
	clock.pass(1)
	if get(t, s, "short") != nil || get(t, s, "count") != nil || get(t, s, "ever") == nil {
		t.Error("not gone, or gone too soon")
	}
	clock.pass(time.Minute)
	if _, ok := s.TTL("ever"); ok {
		t.Error("Expire did not hold")
	}
	if st := s.Stats(); st.Entries != 0 || st.Bytes != 0 || st.Expired != 3 || st.Evicted != 0 {
		t.Errorf("%+v", st)
	}
}

func TestCompareAndSwap(t *testing.T) {
	s, clock := newStore(0)
	one, two := lua.LString("1"), lua.LNumber(2)
	for i, step := range []struct {
		old, new lua.LValue
		ttl      time.Duration
		swapped  bool
		now      lua.LValue
	}{
		{one, two, 0, false, nil},
		{nil, nil, 0, true, nil},
		{nil, one, time.Minute, true, one},
		{nil, two, 0, false, one},
		{lua.LNumber(1), two, 0, false, one}, // another type
		{one, two, store.Keep, true, two},
		{two, lua.LFalse, store.Keep, true, lua.LFalse},
	} {
		swapped, now, err := s.CompareAndSwap("k", step.old, step.new, step.ttl)
		if swapped != step.swapped || now != step.now || err != nil {
			t.Errorf("step %d: %v, %v, %v", i, swapped, now, err)
		}
	}
	if left, _ := s.TTL("k"); left != time.Minute {
		t.Errorf("Keep left %v", left)
	}
	if ok, now, _ := s.CompareAndSwap("k", lua.LFalse, nil, 0); !ok || now != nil || s.Delete("k") {
		t.Error("nil did not take the key away")
	}
	clock.pass(time.Second)
	if _, err := s.Push("l", one, store.Back); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.CompareAndSwap("l", nil, one, 0); !errors.Is(err, store.ErrList) {
		t.Error(err)
	}
}

func TestListsAndValuesAreNotMixed(t *testing.T) {
	s, _ := newStore(0)
	set(t, s, "v", lua.LString("v"), 0)
	if _, err := s.Push("v", lua.LTrue, store.Back); !errors.Is(err, store.ErrNotList) {
		t.Error(err)
	}
	if _, err := s.Pop("v", store.Back); !errors.Is(err, store.ErrNotList) {
		t.Error(err)
	}
	if _, err := s.Len("v"); !errors.Is(err, store.ErrNotList) {
		t.Error(err)
	}
	if _, err := s.Push("l", lua.LTrue, store.Back); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("l"); !errors.Is(err, store.ErrList) {
		t.Error(err)
	}
	if _, err := s.Incr("l", 1, 0); !errors.Is(err, store.ErrNotNumber) {
		t.Error(err)
	}
	if _, err := s.Incr("v", 1, 0); !errors.Is(err, store.ErrNotNumber) {
		t.Error(err)
	}
	set(t, s, "l", lua.LNumber(1), 0) // takes its place
	if n, err := s.Incr("l", 1, 0); n != lua.LNumber(2) || err != nil {
		t.Error(n, err)
	}
}

func TestAFullStoreForgetsWhatWasUsedLongestAgo(t *testing.T) {
	s, _ := newStore(store.MinCapacity)
	value := lua.LString(strings.Repeat("x", 1000))
	for i := range 5000 {
		set(t, s, fmt.Sprint("key", i), value, 0)
		if i >= 1 && get(t, s, "key0") != value {
			t.Fatal("forgot what is always in use after ", i)
		}
	}
	st := s.Stats()
	if get(t, s, "key4999") == nil || get(t, s, "key1") != nil || st.Bytes > st.Capacity || st.Evicted != uint64(5000-st.Entries) {
		t.Errorf("%+v", st)
	}
	if st.Bytes < st.Capacity*8/10 {
		t.Errorf("holds %d of %d bytes", st.Bytes, st.Capacity)
	}
}

func TestWhatIsTooLargeChangesNothing(t *testing.T) {
	s, _ := newStore(store.MinCapacity)
	set(t, s, "k", lua.LString("old"), 0)
	huge := lua.LString(strings.Repeat("x", store.MinCapacity/store.Shards))
	for name, err := range map[string]error{
		"set": s.Set("k", huge, 0), "set anew": s.Set("other", huge, 0), "set a long key": s.Set(string(huge), lua.LTrue, 0),
		"add":  second(s.Add("other", huge, 0)),
		"push": second(s.Push("other", huge, store.Back)),
	} {
		if !errors.Is(err, store.ErrTooLarge) {
			t.Error(name, err)
		}
	}
	if ok, now, err := s.CompareAndSwap("k", lua.LString("old"), huge, 0); ok || now != lua.LString("old") || !errors.Is(err, store.ErrTooLarge) {
		t.Error(ok, now, err)
	}
	n := 0
	for {
		if _, err := s.Push("l", lua.LTrue, store.Back); err != nil {
			break
		}
		n++
	}
	if have, err := s.Len("l"); have != n || err != nil || n < 1000 {
		t.Error(have, n, err)
	}
	if st := s.Stats(); get(t, s, "k") != lua.LString("old") || st.Entries != 2 {
		t.Errorf("%+v", st)
	}
}

func second[T any](_ T, err error) error { return err }

func TestExpiredEntriesMakeRoomThoughNobodyAsksForThem(t *testing.T) {
	s, clock := newStore(store.MinCapacity)
	for i := range 1000 {
		set(t, s, fmt.Sprint("short", i), lua.LTrue, time.Second)
	}
	set(t, s, "ever", lua.LTrue, 0)
	clock.pass(time.Second)
	for i := range 2000 { // two looks each, in 16 shards
		set(t, s, fmt.Sprint("new", i%500), lua.LTrue, time.Hour)
		s.Delete(fmt.Sprint("new", i%500))
	}
	if st := s.Stats(); st.Entries > 20 || st.Evicted != 0 || get(t, s, "ever") == nil {
		t.Errorf("%+v", st)
	}
}

func TestAnotherCapacityHoldsAtOnce(t *testing.T) {
	s, _ := newStore(8 * store.MinCapacity)
	value := lua.LString(strings.Repeat("x", 1000))
	for i := range 4000 {
		set(t, s, fmt.Sprint(i), value, 0)
	}
	if st := s.Stats(); st.Entries != 4000 {
		t.Fatalf("%+v", st)
	}
	s.Resize(store.MinCapacity)
	if st := s.Stats(); st.Bytes > store.MinCapacity || st.Capacity != store.MinCapacity || st.Entries == 0 {
		t.Errorf("%+v", st)
	}
	s.Resize(8 * store.MinCapacity)
	if st := s.Stats(); st.Capacity != 8*store.MinCapacity || st.Entries == 0 {
		t.Errorf("%+v", st)
	}
}

func TestCountersAndListsAreExactHoweverManyUseThem(t *testing.T) {
	s := store.New(store.Options{Capacity: 16 << 20})
	const workers, rounds = 8, 500
	var wait sync.WaitGroup
	var firsts, taken, swaps atomic.Int64
	for w := range workers {
		wait.Go(func() {
			for i := range rounds {
				if _, err := s.Incr("n", 1, 0); err != nil {
					t.Error(err)
				}
				if ok, _ := s.Add(fmt.Sprint("first", i), lua.LTrue, 0); ok {
					firsts.Add(1)
				}
				for {
					v, _ := s.Get("cas")
					var n lua.LNumber
					if v != nil {
						n = v.(lua.LNumber)
					}
					if ok, _, _ := s.CompareAndSwap("cas", v, n+1, 0); ok {
						swaps.Add(1)
						break
					}
				}
				if _, err := s.Push("list", lua.LNumber(w), store.End(i%2 == 0)); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					if v, err := s.Pop("list", store.Front); v != nil && err == nil {
						taken.Add(1)
					}
				}
			}
		})
	}
	wait.Wait()
	n, _ := s.Get("n")
	cas, _ := s.Get("cas")
	left, _ := s.Len("list")
	if n != lua.LNumber(workers*rounds) || cas != n || firsts.Load() != rounds || left != workers*rounds-int(taken.Load()) {
		t.Errorf("counted %v, swapped %v, firsts %d, list %d + %d", n, cas, firsts.Load(), left, taken.Load())
	}
}

// TestBytesAreWhatTheMemoryHolds compares the accounts with the heap.
func TestBytesAreWhatTheMemoryHolds(t *testing.T) {
	for name, fill := range map[string]func(s *store.Store, i int){
		"small":    func(s *store.Store, i int) { set(t, s, fmt.Sprint("key:", i), lua.LString("v"), 0) },
		"counters": func(s *store.Store, i int) { _, _ = s.Incr(fmt.Sprint("key:", i), 1000.5, 0) },
		"texts": func(s *store.Store, i int) {
			set(t, s, fmt.Sprint("key:", i), lua.LString(strings.Repeat("x", 300)), time.Hour)
		},
		"pieces": func(s *store.Store, i int) { // of a text that must not stay
			whole := strings.Repeat(fmt.Sprint(i), 2000)
			set(t, s, whole[:12], lua.LString(whole[20:40]), 0)
		},
		"lists": func(s *store.Store, i int) {
			_, _ = s.Push(fmt.Sprint("list", i%100), lua.LString(fmt.Sprint(i)), store.Back)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store.New(store.Options{Capacity: 256 << 20})
			before := heap()
			for i := range 20000 {
				fill(s, i)
			}
			real, told := heap()-before, s.Stats().Bytes
			if ratio := float64(told) / float64(real); ratio < 0.75 || ratio > 1.4 {
				t.Errorf("tells %d bytes, the heap has grown by %d: %.2f", told, real, ratio)
			}
			runtime.KeepAlive(s)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
