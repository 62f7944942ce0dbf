package luaapi

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

const (
	// storeBytes is how much one named store may hold, keys and a fixed cost for each entry included.
	storeBytes = 32 << 20
	// storeLimit is how many named stores there may be.
	storeLimit  = 64
	storeShards = 16
	// entryCost is what an entry takes beside its key and its text.
	entryCost = 128
)

// Shared holds the named stores that all VMs of a process see, values that expire and counters that are exact whoever counts, and
// the tokens that were verified.
// It is made once for the process and handed to every generation, so a reload takes nothing away. It is safe for concurrent use.
// A store that is full forgets what was used longest ago.
type Shared struct {
	mu     sync.RWMutex
	stores map[string]*store
	now    func() core.Instant

	verifiers verifiers
}

// NewShared makes an empty set of stores.
func NewShared() *Shared { return &Shared{stores: map[string]*store{}, now: core.Now} }

// Each calls do with every store's name, its entries and how many it had to forget so far.
func (s *Shared) Each(do func(name string, entries int, evicted uint64)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, st := range s.stores {
		entries := 0
		for i := range st.shards {
			st.shards[i].mu.Lock()
			entries += len(st.shards[i].entries)
			st.shards[i].mu.Unlock()
		}
		do(name, entries, st.evicted.Load())
	}
}

// store finds or makes a store; nil when there are too many already.
func (s *Shared) store(name string) *store {
	s.mu.RLock()
	st := s.stores[name]
	s.mu.RUnlock()
	if st != nil {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st = s.stores[name]; st == nil && len(s.stores) < storeLimit {
		st = &store{seed: maphash.MakeSeed(), now: s.now}
		s.stores[name] = st
	}
	return st
}

// store is one named store.
type store struct {
	seed    maphash.Seed
	now     func() core.Instant
	evicted atomic.Uint64
	shards  [storeShards]storeShard
}

// storeShard is a map with a list through its entries, the last used first.
type storeShard struct {
	mu      sync.Mutex
	entries map[string]*storeEntry
	used    int
	list    storeEntry // ring: next is the last used, prev the one used longest ago
}

// storeEntry is one value: a string, a float64 or a bool.
type storeEntry struct {
	key        string
	value      any
	expires    core.Instant // 0: never
	prev, next *storeEntry
}

func (e *storeEntry) cost() int {
	text, _ := e.value.(string)
	return entryCost + len(e.key) + len(text)
}

// shard locks the shard of a key.
func (st *store) shard(key string) *storeShard {
	s := &st.shards[maphash.String(st.seed, key)%storeShards]
	s.mu.Lock()
	if s.entries == nil {
		s.entries = map[string]*storeEntry{}
		s.list.prev, s.list.next = &s.list, &s.list
	}
	return s
}

func (st *store) get(key string) any {
	s := st.shard(key)
	defer s.mu.Unlock()
	if e := s.live(key, st.now()); e != nil {
		return e.value
	}
	return nil
}

// set tells whether there was room for the value. With fresh it leaves a value that is there alone and tells false.
func (st *store) set(key string, value any, ttl time.Duration, fresh bool) bool {
	s := st.shard(key)
	defer s.mu.Unlock()
	now := st.now()
	e := s.live(key, now)
	if e != nil && fresh {
		return false
	}
	if e != nil {
		s.drop(e)
	}
	e = &storeEntry{key: key, value: value}
	if ttl > 0 {
		e.expires = now.Add(ttl)
	}
	if e.cost() > storeBytes/storeShards {
		return false
	}
	s.entries[key] = e
	s.used += e.cost()
	s.front(e)
	st.evicted.Add(s.fit())
	return true
}

// incr adds to a number and gives the sum; a key that is not there counts from 0 and lives for ttl. It tells false when the value
// is no number.
func (st *store) incr(key string, delta float64, ttl time.Duration) (float64, bool) {
	s := st.shard(key)
	defer s.mu.Unlock()
	now := st.now()
	if e := s.live(key, now); e != nil {
		n, ok := e.value.(float64)
		if ok {
			n += delta
			e.value = n
		}
		return n, ok
	}
	e := &storeEntry{key: key, value: delta}
	if ttl > 0 {
		e.expires = now.Add(ttl)
	}
	s.entries[key] = e
	s.used += e.cost()
	s.front(e)
	st.evicted.Add(s.fit())
	return delta, true
}

func (st *store) delete(key string) bool {
	s := st.shard(key)
	defer s.mu.Unlock()
	e := s.live(key, st.now())
	if e != nil {
		s.drop(e)
	}
	return e != nil
}

// live finds an entry that has not expired and counts it as used.
func (s *storeShard) live(key string, now core.Instant) *storeEntry {
	e := s.entries[key]
	if e == nil {
		return nil
	}
	if e.expires != 0 && e.expires <= now {
		s.drop(e)
		return nil
	}
	e.prev.next, e.next.prev = e.next, e.prev
	s.front(e)
	return e
}

func (s *storeShard) front(e *storeEntry) {
	e.prev, e.next = &s.list, s.list.next
	e.prev.next, e.next.prev = e, e
}

func (s *storeShard) drop(e *storeEntry) {
	delete(s.entries, e.key)
	s.used -= e.cost()
	e.prev.next, e.next.prev = e.next, e.prev
}

// fit forgets what was used longest ago until the rest fits, and tells how much it forgot.
func (s *storeShard) fit() (forgotten uint64) {
	for s.used > storeBytes/storeShards {
		s.drop(s.list.prev)
		forgotten++
	}
	return forgotten
}
