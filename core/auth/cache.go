package auth

import (
	"hash/maphash"
	"sync/atomic"
)

// ways is the number of places where a token may lie.
const ways = 4

// cache holds verified tokens by their text: a hash table of a fixed size with four places for each hash. Nothing waits and
// nothing is allocated; a token that finds its places taken takes one.
type cache struct {
	seed maphash.Seed
	sets [][ways]atomic.Pointer[Token]
}

// newCache makes room for that many tokens, rounded up to a power of two.
func newCache(size int) *cache {
	sets := 1
	for sets*ways < size {
		sets *= 2
	}
	return &cache{seed: maphash.MakeSeed(), sets: make([][ways]atomic.Pointer[Token], sets)}
}

func (c *cache) hash(text string) uint64 { return maphash.String(c.seed, text) }

func (c *cache) set(hash uint64) *[ways]atomic.Pointer[Token] {
	return &c.sets[hash&uint64(len(c.sets)-1)]
}

// get gives the token with that text, nil if it is not there.
func (c *cache) get(hash uint64, text string) *Token {
	set := c.set(hash)
	for i := range set {
		if t := set[i].Load(); t != nil && t.hash == hash && t.text == text {
			return t
		}
	}
	return nil
}

// put keeps a token. If another goroutine has just kept the same one, that one is returned.
func (c *cache) put(t *Token, now int64) *Token {
	set := c.set(t.hash)
	place := int(t.hash >> 62) // none free: any will do
	for i := range set {
		old := set[i].Load()
		if old == nil || old.until <= now {
			place = i
			continue
		}
		if old.hash == t.hash && old.text == t.text {
			return old
		}
	}
	set[place].Store(t)
	return t
}
