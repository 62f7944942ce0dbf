package balance

import (
	"math/rand/v2"

	"github.com/moongate/moongate/core"
)

// P2CEWMA takes the better of two endpoints chosen at random (Mitzenmacher 2001, "The power of two choices in randomized load balancing").
// Better is who has the smaller product of requests under way and latency for its weight. Latency is the peak-sensitive moving average of
// Finagle and Linkerd, Peak EWMA: it rises at once with a slow answer and falls slowly with fast ones, and with time while nobody asks, so that
// an endpoint that was slow is tried again. Errors double it, since to fail fast is not to be fast.
type P2CEWMA struct {
	loads []*Load // by Endpoint.Index
}

// NewP2CEWMA makes a balancer for endpoints with these loads, by Endpoint.Index.
func NewP2CEWMA(loads []*Load) *P2CEWMA { return &P2CEWMA{loads} }

// Pick implements Balancer.
func (b *P2CEWMA) Pick(ready []*core.Endpoint, _ string) *core.Endpoint {
	n := uint32(len(ready))
	if n == 1 {
		return ready[0]
	}
	i, j := rand.Uint32N(n), rand.Uint32N(n-1)
	if j >= i {
		j++
	}
	one, other, now := ready[i], ready[j], core.Now()
	if b.loads[other.Index].cost(now)*float64(one.Weight) < b.loads[one.Index].cost(now)*float64(other.Weight) {
		return other
	}
	return one
}

// Take implements Metered.
func (b *P2CEWMA) Take(ready []*core.Endpoint, _ string) *core.Endpoint {
	e := b.Pick(ready, "")
	b.loads[e.Index].Enter()
	return e
}
