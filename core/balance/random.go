package balance

import (
	"math/rand/v2"

	"github.com/moongate/moongate/core"
)

// Random takes each endpoint with the same chance.
type Random struct{}

// Pick implements Balancer.
func (Random) Pick(ready []*core.Endpoint, _ string) *core.Endpoint {
	return ready[rand.IntN(len(ready))]
}
