package balance

import (
	"math"

	"github.com/moongate/moongate/core"
)

// ConsistentHash sends a key to the same endpoint as long as that is ready, in every gateway and over restarts, and spreads keys by weight. When an
// endpoint goes, its keys alone move, to all others; when it returns they do. It is weighted rendezvous hashing (Thaler and Ravishankar 1998,
// Schindelhauer and Schomaker 2005). Requests without a key take turns, by weight.
type ConsistentHash struct {
	keyless *SmoothWeighted
}

// NewConsistentHash makes a balancer for an upstream of so many endpoints.
func NewConsistentHash(endpoints int) *ConsistentHash {
	return &ConsistentHash{keyless: NewSmoothWeighted(endpoints)}
}

// Pick implements Balancer.
func (b *ConsistentHash) Pick(ready []*core.Endpoint, key string) *core.Endpoint {
	if key == "" {
		return b.keyless.Pick(ready, "")
	}
	seed := fnv1a(key)
	best, most := ready[0], math.Inf(-1)
	for _, e := range ready {
		u := (float64(mixed(seed^mixed(fnv1a(e.Address)))>>11) + 0.5) / (1 << 53) // between 0 and 1, neither of them
		if score := -float64(e.Weight) / math.Log(u); score > most {
			best, most = e, score
		}
	}
	return best
}

// fnv1a is the hash of that name with 64 bits (draft-eastlake-fnv).
func fnv1a(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mixed spreads every bit over all others: the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
func mixed(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
