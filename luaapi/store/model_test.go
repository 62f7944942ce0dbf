package store_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/store"
)

// model is the obvious store: slow, without bounds.
type model struct {
	values map[string]*modelEntry
	clock  *clock
}

type modelEntry struct {
	value   lua.LValue
	list    []lua.LValue // not nil: a list
	expires core.Instant
}

func (m *model) find(key string) *modelEntry {
	e := m.values[key]
	if e != nil && e.expires != 0 && e.expires <= m.clock.now {
		delete(m.values, key)
		return nil
	}
	return e
}

func (m *model) end(ttl time.Duration) core.Instant {
	if ttl == 0 {
		return 0
	}
	return m.clock.now.Add(ttl)
}

// FuzzAgainstTheModel plays the same operations on a store and on the model.
func FuzzAgainstTheModel(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, clock := newStore(store.MinCapacity)
		m := &model{values: map[string]*modelEntry{}, clock: clock}
		for range 400 {
			step(t, random, s, m)
		}
		for _, key := range []string{"a", "b", "c"} {
			s.Delete(key)
		}
		if st := s.Stats(); st.Entries != 0 || st.Bytes != 0 {
			t.Errorf("empty, but %+v", st)
		}
	})
}

func step(t *testing.T, random *rand.Rand, s *store.Store, m *model) {
	key := []string{"a", "b", "c"}[random.IntN(3)]
	v := []lua.LValue{lua.LString("x"), lua.LString(""), lua.LNumber(1), lua.LNumber(2.5), lua.LTrue, lua.LFalse}[random.IntN(6)]
	ttl := []time.Duration{0, 1, 5}[random.IntN(3)]
	at := store.End(random.IntN(2) == 0)
	e := m.find(key)
	switch random.IntN(10) {
	case 0:
		m.clock.pass(time.Duration(random.IntN(4)))
	case 1:
		same(t, "set", s.Set(key, v, ttl), nil)
		m.values[key] = &modelEntry{value: v, expires: m.end(ttl)}
	case 2:
		added, err := s.Add(key, v, ttl)
		same(t, "add", err, nil)
		same(t, "added", added, e == nil)
		if added {
			m.values[key] = &modelEntry{value: v, expires: m.end(ttl)}
		}
	case 3:
		m.incr(t, s, key, e, ttl)
	case 4:
		m.swap(t, random, s, key, e, v, ttl)
	case 5:
		same(t, "delete", s.Delete(key), e != nil)
		delete(m.values, key)
	case 6:
		same(t, "expire", s.Expire(key, ttl), e != nil)
		if e != nil {
			e.expires = m.end(ttl)
		}
	case 7:
		m.push(t, s, key, e, v, at)
	case 8:
		m.pop(t, s, key, e, at)
	}
	m.look(t, s, key)
}

func (m *model) incr(t *testing.T, s *store.Store, key string, e *modelEntry, ttl time.Duration) {
	sum, err := s.Incr(key, 3, ttl)
	if e == nil {
		e = &modelEntry{value: lua.LNumber(0), expires: m.end(ttl)}
		m.values[key] = e
	}
	n, ok := e.value.(lua.LNumber)
	if !ok {
		same(t, "incr", errors.Is(err, store.ErrNotNumber), true)
		return
	}
	e.value = n + 3
	same(t, "sum", sum, e.value)
}

func (m *model) swap(t *testing.T, random *rand.Rand, s *store.Store, key string, e *modelEntry, v lua.LValue, ttl time.Duration) {
	var old lua.LValue
	if e != nil && random.IntN(3) > 0 {
		old = e.value
	}
	swapped, _, err := s.CompareAndSwap(key, old, v, ttl)
	if e != nil && e.list != nil {
		same(t, "cas", errors.Is(err, store.ErrList), true)
		return
	}
	var had lua.LValue
	if e != nil {
		had = e.value
	}
	same(t, "swapped", swapped, had == old)
	if swapped {
		m.values[key] = &modelEntry{value: v, expires: m.end(ttl)}
	}
}

func (m *model) push(t *testing.T, s *store.Store, key string, e *modelEntry, v lua.LValue, at store.End) {
	n, err := s.Push(key, v, at)
	if e == nil {
		e = &modelEntry{list: []lua.LValue{}}
		m.values[key] = e
	}
	if e.list == nil {
		same(t, "push", errors.Is(err, store.ErrNotList), true)
		return
	}
	if at == store.Front {
		e.list = append([]lua.LValue{v}, e.list...)
	} else {
		e.list = append(e.list, v)
	}
	same(t, "length", n, len(e.list))
}

func (m *model) pop(t *testing.T, s *store.Store, key string, e *modelEntry, at store.End) {
	v, err := s.Pop(key, at)
	switch {
	case e == nil:
		same(t, "pop of nothing", v, nil)
	case e.list == nil:
		same(t, "pop", errors.Is(err, store.ErrNotList), true)
	default:
		i := 0
		if at == store.Back {
			i = len(e.list) - 1
		}
		same(t, "popped", v, e.list[i])
		e.list = append(e.list[:i], e.list[i+1:]...)
		if len(e.list) == 0 {
			delete(m.values, key)
		}
	}
}

// look compares what a key has.
func (m *model) look(t *testing.T, s *store.Store, key string) {
	e := m.find(key)
	v, err := s.Get(key)
	n, lenErr := s.Len(key)
	left, there := s.TTL(key)
	same(t, "there", there, e != nil)
	switch {
	case e == nil:
		same(t, "nothing", v, nil)
	case e.list != nil:
		same(t, "a list", errors.Is(err, store.ErrList), true)
		same(t, "length", n, len(e.list))
	default:
		same(t, "value", v, e.value)
		same(t, "no list", errors.Is(lenErr, store.ErrNotList), true)
	}
	if e != nil && e.expires != 0 {
		same(t, "left", left, e.expires.Sub(m.clock.now))
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}
