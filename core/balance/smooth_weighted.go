package balance

import (
	"sync"

	"github.com/moongate/moongate/core"
)

// SmoothWeighted is nginx's smooth weighted round robin: every pick raises each endpoint's current weight by its weight, takes the highest and
// lowers that by the sum of all. 5:1:1 gives a a b a c a a. Endpoints that are not ready neither gain nor lose.
type SmoothWeighted struct {
	mu      sync.Mutex
	current []int // by Endpoint.Index
}

// NewSmoothWeighted makes a balancer for an upstream of so many endpoints.
func NewSmoothWeighted(endpoints int) *SmoothWeighted {
	return &SmoothWeighted{current: make([]int, endpoints)}
}

// Pick implements Balancer.
func (b *SmoothWeighted) Pick(ready []*core.Endpoint, _ string) *core.Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	best, total := ready[0], 0
	for i, e := range ready {
		b.current[e.Index] += e.Weight
		total += e.Weight
		if i > 0 && b.current[e.Index] > b.current[best.Index] {
			best = e
		}
	}
	b.current[best.Index] -= total
	return best
}
