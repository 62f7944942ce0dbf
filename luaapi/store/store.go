// Package store keeps values that all Lua VMs of a process see: it answers what is remembered between requests, for how long, and
// what is forgotten when there is no more room.
//
//	s := store.New(store.Options{Capacity: 32 << 20})
//	err := s.Set("token", lua.LString("tom"), time.Minute)
//	sum, err := s.Incr("visits", 1, 0)
//
// A Store is a map in shards, each with a lock, a list in order of use and its share of the capacity. Every operation is atomic: it
// holds the one shard of its key, and never waits for anything else. The package starts no goroutine; what has expired makes room
// when it is met, at the latest when the next values come.
package store

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
)

var (
	// ErrTooLarge means that an entry would take more than a shard of the store may hold. Nothing was changed.
	ErrTooLarge = errors.New("too large")
	// ErrList means that the key holds a list where a value was asked for.
	ErrList = errors.New("a list")
	// ErrNotList means that the key holds a value where a list was asked for.
	ErrNotList = errors.New("not a list")
	// ErrNotNumber means that the key holds no number where one was to be added to.
	ErrNotNumber = errors.New("not a number")
)

const (
	// MinCapacity is the least capacity of a store in bytes.
	MinCapacity = 1 << 20
	// Shards is into how many parts a store is divided: one entry takes at most a Shards-th of the capacity.
	Shards = 16
)

// Options say how large a store is.
type Options struct {
	Capacity int64               // bytes, at least MinCapacity
	Now      func() core.Instant // nil: core.Now
}

// Store is one set of values by key. All methods are safe for concurrent use. A ttl is how long an entry lives, 0 for ever; values are
// immutable: strings, numbers, booleans, or tables that are frozen.
type Store struct {
	seed             maphash.Seed
	now              func() core.Instant
	limit            atomic.Int64 // bytes of one shard
	evicted, expired atomic.Uint64
	shards           [Shards]shard
}

// New makes an empty store.
func New(o Options) *Store {
	s := &Store{seed: maphash.MakeSeed(), now: o.Now}
	if s.now == nil {
		s.now = core.Now
	}
	s.limit.Store(max(o.Capacity, MinCapacity) / Shards)
	for i := range s.shards {
		s.shards[i].init()
	}
	return s
}

// Resize changes the capacity and forgets at once what no longer fits.
func (s *Store) Resize(capacity int64) {
	limit := max(capacity, MinCapacity) / Shards
	if s.limit.Swap(limit) <= limit {
		return
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		s.fit(sh)
		sh.mu.Unlock()
	}
}

// Stats are a store's counters and gauges.
type Stats struct {
	Entries  int
	Bytes    int64 // what the entries take, keys and all overheads included
	Capacity int64
	Evicted  uint64 // forgotten, unexpired, because there was no more room
	Expired  uint64 // gone because their time was over
}

// Stats reads them; expired entries that nobody has met yet are among Entries and Bytes.
func (s *Store) Stats() Stats {
	st := Stats{Capacity: s.limit.Load() * Shards, Evicted: s.evicted.Load(), Expired: s.expired.Load()}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		st.Entries += len(sh.entries)
		st.Bytes += sh.used
		sh.mu.Unlock()
	}
	return st
}

// shard is a map with a ring through its entries: next of the root is the one used last, prev the one used longest ago.
type shard struct {
	mu       sync.Mutex
	entries  map[string]*entry
	root     entry
	used     int64  // bytes
	expiring int    // entries with an end
	hand     *entry // which entry sweep looks at next; nil or the root: the one used longest ago
	_        [40]byte
}

func (sh *shard) init() {
	sh.entries = map[string]*entry{}
	sh.root.prev, sh.root.next = &sh.root, &sh.root
}

// lock locks the shard of a key.
func (s *Store) lock(key string) *shard {
	sh := &s.shards[maphash.String(s.seed, key)%Shards]
	sh.mu.Lock()
	return sh
}

// entry is one key with its value or its list.
type entry struct {
	key        string
	value      lua.LValue
	list       *deque // nil: a value
	expires    core.Instant
	base, size int64 // bytes: key and overheads, value or list
	prev, next *entry
}

// find gives the live entry of a key and counts it as used; nil when there is none.
func (s *Store) find(sh *shard, key string) *entry {
	e := sh.entries[key]
	if e == nil {
		return nil
	}
	if e.expires != 0 && e.expires <= s.now() {
		s.expired.Add(1)
		sh.drop(e)
		return nil
	}
	if sh.root.next != e {
		sh.unlink(e)
		sh.pushFront(e)
	}
	return e
}

// insert adds an entry for a key that has none. The key is not kept: a piece of a longer string would keep all of it.
func (s *Store) insert(sh *shard, key string, e *entry, ttl time.Duration) error {
	text, size := cloned(key)
	e.key, e.base = text, size+entryCost
	if e.base+e.size > s.limit.Load() {
		return ErrTooLarge
	}
	sh.entries[e.key] = e
	sh.used += e.base + e.size
	sh.pushFront(e)
	s.schedule(sh, e, ttl)
	s.sweep(sh)
	s.fit(sh)
	return nil
}

// schedule sets when an entry ends.
func (s *Store) schedule(sh *shard, e *entry, ttl time.Duration) {
	if e.expires != 0 {
		sh.expiring--
	}
	if e.expires = 0; ttl > 0 {
		e.expires = s.now().Add(ttl)
		sh.expiring++
	}
}

// resize notes that an entry's value takes size bytes now, or refuses.
func (s *Store) resize(sh *shard, e *entry, size int64) error {
	if e.base+size > s.limit.Load() {
		return ErrTooLarge
	}
	sh.used += size - e.size
	e.size = size
	s.fit(sh)
	return nil
}

// sweep looks at two more entries and drops those whose time is over, so that what nobody asks for again makes room.
func (s *Store) sweep(sh *shard) {
	if sh.expiring == 0 {
		return
	}
	now := s.now()
	for range 2 {
		e := sh.hand
		if e == nil || e == &sh.root {
			e = sh.root.prev
		}
		if e == &sh.root {
			return
		}
		sh.hand = e.prev
		if e.expires != 0 && e.expires <= now {
			s.expired.Add(1)
			sh.drop(e)
		}
	}
}

// fit forgets what was used longest ago until the rest fits. The entry used last always stays: it fits alone.
func (s *Store) fit(sh *shard) {
	limit := s.limit.Load()
	for sh.used > limit && sh.root.prev != &sh.root {
		e := sh.root.prev
		if e.expires != 0 && e.expires <= s.now() {
			s.expired.Add(1)
		} else {
			s.evicted.Add(1)
		}
		sh.drop(e)
	}
}

func (sh *shard) drop(e *entry) {
	delete(sh.entries, e.key)
	sh.used -= e.base + e.size
	if e.expires != 0 {
		sh.expiring--
	}
	sh.unlink(e)
}

func (sh *shard) unlink(e *entry) {
	if sh.hand == e {
		sh.hand = e.prev
	}
	e.prev.next, e.next.prev = e.next, e.prev
}

func (sh *shard) pushFront(e *entry) {
	e.prev, e.next = &sh.root, sh.root.next
	e.prev.next, e.next.prev = e, e
}
