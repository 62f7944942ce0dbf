package balance

import (
	"sync"

	"github.com/moongate/moongate/core"
)

// LeastConn takes the endpoint with the fewest requests under way for its weight. Those that are equal in that take turns by weight, as nginx's
// least_conn has it: while there is little to do, weights are kept as SmoothWeighted keeps them.
type LeastConn struct {
	loads []*Load // by Endpoint.Index

	mu     sync.Mutex
	turns  *SmoothWeighted
	active []int64          // by Endpoint.Index, as they were when the choice began
	least  []*core.Endpoint // room for those that are equal
}

// NewLeastConn makes a balancer for endpoints with these loads, by Endpoint.Index.
func NewLeastConn(loads []*Load) *LeastConn {
	n := len(loads)
	return &LeastConn{loads: loads, turns: NewSmoothWeighted(n), active: make([]int64, n), least: make([]*core.Endpoint, 0, n)}
}

// Pick implements Balancer.
func (b *LeastConn) Pick(ready []*core.Endpoint, _ string) *core.Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.choose(ready)
}

// Take implements Metered. Nobody else chooses between the choice and the count.
func (b *LeastConn) Take(ready []*core.Endpoint, _ string) *core.Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.choose(ready)
	b.loads[e.Index].Enter()
	return e
}

func (b *LeastConn) choose(ready []*core.Endpoint) *core.Endpoint {
	b.least = b.least[:0]
	for _, e := range ready {
		b.active[e.Index] = b.loads[e.Index].Active()
		if len(b.least) > 0 {
			best := b.least[0]
			has, may := b.active[e.Index]*int64(best.Weight), b.active[best.Index]*int64(e.Weight)
			if has > may {
				continue
			}
			if has < may {
				b.least = b.least[:0]
			}
		}
		b.least = append(b.least, e)
	}
	if len(b.least) == 1 {
		return b.least[0]
	}
	return b.turns.Pick(b.least, "")
}
