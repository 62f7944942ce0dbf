package luaapi

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/store"
)

// storeLimit is how many named stores there may be.
const storeLimit = 64

// Shared holds what all VMs of a process see: the named stores of gw.shared, what filters keep by gw.cache, and the tokens that were
// verified. It is made once for the process and handed to every generation, so a reload takes nothing away. It is safe for
// concurrent use.
type Shared struct {
	mu         sync.Mutex                              // held to change the stores
	stores     atomic.Pointer[map[string]*store.Store] // replaced, never changed
	capacities map[string]int64                        // of [shared.NAME]
	caches     map[string]*filterCache                 // of gw.cache, by filter
	cacheSize  int64                                   // bytes of one
	now        func() core.Instant

	verifiers verifiers
}

// NewShared makes an empty set of stores. now is their clock; nil is core.Now.
func NewShared(now func() core.Instant) *Shared {
	if now == nil {
		now = core.Now
	}
	s := &Shared{now: now, caches: map[string]*filterCache{}}
	s.stores.Store(&map[string]*store.Store{})
	return s
}

// Each calls do with every store's name and its state.
func (s *Shared) Each(do func(name string, st store.Stats)) {
	for name, st := range *s.stores.Load() {
		do(name, st.Stats())
	}
}

// store finds or makes a store; nil when there are too many already.
func (s *Shared) store(name string) *store.Store {
	if st := (*s.stores.Load())[name]; st != nil {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stores := *s.stores.Load()
	if st := stores[name]; st != nil || len(stores) >= storeLimit {
		return st
	}
	stores = maps.Clone(stores)
	st := store.New(store.Options{Capacity: s.capacity(name), Now: s.now})
	stores[name] = st
	s.stores.Store(&stores)
	return st
}

// capacity is called with the lock held.
func (s *Shared) capacity(name string) int64 {
	if n, ok := s.capacities[name]; ok {
		return n
	}
	return conf.DefaultSharedCapacity
}

// cache finds or makes the cache of a filter.
func (s *Shared) cache(filter string) *filterCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.caches[filter]
	if c == nil {
		c = newFilterCache(s.cacheSize, s.now)
		s.caches[filter] = c
	}
	return c
}

// eachCache calls do with every filter that keeps something.
func (s *Shared) eachCache(do func(filter string, c *filterCache)) {
	s.mu.Lock()
	caches := maps.Clone(s.caches)
	s.mu.Unlock()
	for filter, c := range caches {
		do(filter, c)
	}
}

// commit gives the stores the capacities of the configuration that goes live, and forgets the caches of filters that it does not have.
func (s *Shared) commit(c *conf.Config, handles []*cacheHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacities = make(map[string]int64, len(c.Shared))
	for _, st := range c.Shared {
		s.capacities[st.Name] = st.Capacity
	}
	for name, st := range *s.stores.Load() {
		st.Resize(s.capacity(name))
	}
	s.cacheSize = c.Scripts.CacheCapacity
	live := map[string][]origin{}
	for _, h := range handles {
		live[h.filter] = append(live[h.filter], h.origin)
	}
	maps.DeleteFunc(s.caches, func(filter string, _ *filterCache) bool { return live[filter] == nil })
	for filter, fc := range s.caches {
		fc.retain(live[filter])
		fc.values.Resize(s.cacheSize)
	}
}
