package store

import (
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Get gives a key's value, nil when it has none. The error is ErrList.
func (s *Store) Get(key string) (lua.LValue, error) {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	switch {
	case e == nil:
		return nil, nil
	case e.list != nil:
		return nil, ErrList
	}
	return e.value, nil
}

// Set gives a key a value, in the place of whatever it has. The error is ErrTooLarge; the key then keeps what it has.
func (s *Store) Set(key string, v lua.LValue, ttl time.Duration) error {
	v, size := Own(v)
	return s.Put(key, v, size, ttl)
}

// Put is Set for a value that takes size bytes and that nobody else keeps: a frozen table, for instance.
func (s *Store) Put(key string, v lua.LValue, size int64, ttl time.Duration) error {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	return s.put(sh, key, s.find(sh, key), v, size, ttl)
}

// put sets the value of a key whose entry is e, nil for none.
func (s *Store) put(sh *shard, key string, e *entry, v lua.LValue, size int64, ttl time.Duration) error {
	if e == nil {
		return s.insert(sh, key, &entry{value: v, size: size}, ttl)
	}
	if err := s.resize(sh, e, size); err != nil {
		return err
	}
	e.value, e.list = v, nil
	s.schedule(sh, e, ttl)
	return nil
}

// Add sets a key that has nothing, and tells whether it did: of many who try at once, one is told true. The error is ErrTooLarge.
func (s *Store) Add(key string, v lua.LValue, ttl time.Duration) (bool, error) {
	v, size := Own(v)
	sh := s.lock(key)
	defer sh.mu.Unlock()
	if s.find(sh, key) != nil {
		return false, nil
	}
	err := s.insert(sh, key, &entry{value: v, size: size}, ttl)
	return err == nil, err
}

// Incr adds to a number and gives the sum. A key without a value counts from 0 and lives for ttl; adding does not prolong it. The
// error is ErrNotNumber or ErrTooLarge.
func (s *Store) Incr(key string, delta lua.LNumber, ttl time.Duration) (lua.LValue, error) {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e == nil {
		v, size := Own(delta)
		return v, s.insert(sh, key, &entry{value: v, size: size}, ttl)
	}
	n, ok := e.value.(lua.LNumber)
	if !ok {
		return nil, ErrNotNumber
	}
	e.value = n + delta
	return e.value, nil
}

// Keep is the ttl of CompareAndSwap that leaves an entry's end as it is.
const Keep time.Duration = -1

// CompareAndSwap gives a key the value new if it has the value old, and tells whether it did and what the key has now. nil is no
// value, for either. With ttl Keep the entry ends when it would have ended. The error is ErrList or ErrTooLarge.
func (s *Store) CompareAndSwap(key string, old, new lua.LValue, ttl time.Duration) (swapped bool, now lua.LValue, err error) {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e != nil {
		if now = e.value; e.list != nil {
			return false, nil, ErrList
		}
	}
	switch {
	case now != old:
		return false, now, nil
	case new == nil && e == nil:
		return true, nil, nil
	case new == nil:
		sh.drop(e)
		return true, nil, nil
	}
	v, size := Own(new)
	if ttl == Keep {
		if ttl = 0; e != nil && e.expires != 0 {
			ttl = max(e.expires.Sub(s.now()), 1)
		}
	}
	if err = s.put(sh, key, e, v, size, ttl); err != nil {
		return false, now, err
	}
	return true, v, nil
}

// Delete takes a key away and tells whether it had something.
func (s *Store) Delete(key string) bool {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e != nil {
		sh.drop(e)
	}
	return e != nil
}

// TTL tells how long a key will live, 0 for ever; false when it has nothing.
func (s *Store) TTL(key string) (time.Duration, bool) {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e == nil || e.expires == 0 {
		return 0, e != nil
	}
	return max(e.expires.Sub(s.now()), 1), true
}

// Expire sets how long a key will live from now on, 0 for ever, and tells whether it has something.
func (s *Store) Expire(key string, ttl time.Duration) bool {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e != nil {
		s.schedule(sh, e, ttl)
	}
	return e != nil
}
