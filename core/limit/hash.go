package limit

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// hasher hashes keys to 64 bits, by a secret of its own: nobody who does not know it finds keys that share a hash. Short keys such as addresses
// it multiplies with the secret as the runtime does for its maps where a processor has no AES (wyhash), which takes half the time of maphash.
type hasher struct {
	a, b uint64
	seed maphash.Seed
}

func newHasher() hasher { return hasher{rand.Uint64(), rand.Uint64(), maphash.MakeSeed()} }

// short is up to where keys are multiplied.
const short = 16

// hash is never 0.
func (h *hasher) hash(key string) uint64 {
	if len(key) > short {
		return max(maphash.String(h.seed, key), 1)
	}
	var first, last uint64 // of the key; they overlap
	switch n := len(key); {
	case n >= 8:
		first, last = eight(key), eight(key[n-8:])
	case n >= 4:
		first, last = four(key), four(key[n-4:])
	case n > 0:
		first = uint64(key[0])<<16 | uint64(key[n/2])<<8 | uint64(key[n-1])
	}
	hi, lo := bits.Mul64(first^h.a, last^h.b)
	hi, lo = bits.Mul64(hi^h.a^uint64(len(key)), lo^h.b)
	return max(hi^lo, 1)
}

func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func four(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}
