package balance

import (
	"sync/atomic"

	"github.com/moongate/moongate/core"
)

// RoundRobin takes the endpoints in turn. The zero value is ready.
type RoundRobin struct {
	next atomic.Uint32
}

// Pick implements Balancer.
func (b *RoundRobin) Pick(ready []*core.Endpoint, _ string) *core.Endpoint {
	return ready[(b.next.Add(1)-1)%uint32(len(ready))]
}
