package luaapi

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/store"
	"github.com/moongate/moongate/luaapi/vm"
)

// filterCache is what a filter keeps by gw.cache, over reloads too. Its keys are apart for each origin of the filter's functions, so that
// nothing made by other settings or an older script is ever found.
type filterCache struct {
	values *store.Store
	now    func() core.Instant

	mu      sync.Mutex
	origins []numberedOrigin
	last    uint32             // number given
	flights map[string]*flight // what is being loaded, by key

	hits, misses, stale, waited atomic.Uint64 // look-ups, by how they ended
	loaded, failed              atomic.Uint64 // runs of loaders
	complained                  atomic.Int64  // Instant of the last line about a refresh that failed
}

// cached is what stands in a cache: a value, or that there is none.
type cached struct {
	lua.LValue              // LNil: none
	err        string       // why there is none, or why the value was not made anew
	raised     bool         // err was raised
	fresh      core.Instant // until when nobody loads again
}

// usable tells whether there is a value, fresh or not.
func (c *cached) usable() bool { return c != nil && c.LValue != lua.LNil }

// flight is one run of a loader, for all who want its key.
type flight struct {
	done   chan struct{}
	owner  *vm.VM
	result *cached // set before done is closed; nil when the run was given up: somebody else should try
}

func newFilterCache(capacity int64, now func() core.Instant) *filterCache {
	return &filterCache{values: store.New(store.Options{Capacity: capacity, Now: now}), now: now, flights: map[string]*flight{}}
}

// numberedOrigin has the number that keys of an origin begin with.
type numberedOrigin struct {
	origin
	number uint32
}

// number tells origins apart.
func (c *filterCache) number(o origin) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.origins {
		if c.origins[i].equal(o) {
			return c.origins[i].number
		}
	}
	c.last++
	c.origins = append(c.origins, numberedOrigin{o, c.last})
	return c.last
}

// retain forgets the numbers of all other origins; what was kept under them leaves with its time or for want of room.
func (c *filterCache) retain(live []origin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.origins = slices.DeleteFunc(c.origins, func(n numberedOrigin) bool { return !slices.ContainsFunc(live, n.equal) })
}

// get gives what a key has, fresh or not; nil for nothing.
func (c *filterCache) get(key string) *cached {
	v, _ := c.values.Get(key)
	found, _ := v.(*cached)
	return found
}

// put keeps a result for life and tells whether it could: it may be too large, or its life over. Otherwise the key has nothing.
func (c *filterCache) put(key string, v *cached, size int64, life time.Duration) bool {
	if life > 0 && c.values.Put(key, v, size+int64(unsafe.Sizeof(*v))+int64(len(v.err)), life) == nil {
		return true
	}
	c.values.Delete(key)
	return false
}

// board joins the flight of a key, or begins one: then leads is true and the caller ends it by land. When a fresh result has come
// meanwhile there is no flight. The key is kept.
func (c *filterCache) board(key string, owner *vm.VM) (f *flight, fresh *cached, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f = c.flights[key]; f != nil {
		return f, nil, false
	}
	if found := c.get(key); found != nil && c.now() < found.fresh {
		return nil, found, false
	}
	f = &flight{done: make(chan struct{}), owner: owner}
	c.flights[key] = f
	return f, nil, true
}

// land ends a flight.
func (c *filterCache) land(key string, f *flight, result *cached) {
	c.mu.Lock()
	delete(c.flights, key)
	c.mu.Unlock()
	f.result = result
	close(f.done)
}

// cacheHandle is the cache of one filter with one set of settings.
type cacheHandle struct {
	filter string
	origin origin
	cache  atomic.Pointer[numberedCache] // once it was used
}

type numberedCache struct {
	*filterCache
	number uint32
}

func (h *cacheHandle) open(s *Shared) *numberedCache {
	if c := h.cache.Load(); c != nil {
		return c
	}
	c := s.cache(h.filter)
	h.cache.Store(&numberedCache{c, c.number(h.origin)})
	return h.cache.Load()
}

// key appends the key under which a cache keeps what a script calls key.
func (c *numberedCache) key(dst []byte, key string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, c.number), key...)
}
