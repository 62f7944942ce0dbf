// Package balance answers one question: which of an upstream's ready endpoints takes the next request? A [Balancer] never blocks, does no
// I/O and knows nothing of health: it is given the endpoints that are ready. A new algorithm is one file here and one line in the table.
package balance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moongate/moongate/core"
)

// Balancer chooses endpoints. It is safe for concurrent use.
type Balancer interface {
	// Pick chooses one of ready, which has at least one endpoint and lists them in configured order. key is what balancers that hash go
	// by; the others do not look at it.
	Pick(ready []*core.Endpoint, key string) *core.Endpoint
}

// kinds is the table of algorithms by their configured names. Each constructor gets the number of endpoints that the upstream has.
var kinds = map[string]func(endpoints int) Balancer{
	"round_robin":     func(int) Balancer { return new(RoundRobin) },
	"random":          func(int) Balancer { return Random{} },
	"consistent_hash": func(n int) Balancer { return NewConsistentHash(n) },
	"smooth_weighted": func(n int) Balancer { return NewSmoothWeighted(n) },
}

// Default is the algorithm of an upstream that names none.
const Default = "round_robin"

// Names lists the algorithms, sorted.
func Names() []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New makes the balancer of that name for an upstream of so many endpoints.
func New(name string, endpoints int) (Balancer, error) {
	if name == "" {
		name = Default
	}
	if make, ok := kinds[name]; ok {
		return make(endpoints), nil
	}
	return nil, fmt.Errorf("unknown balancer %q; known are %s", name, strings.Join(Names(), ", "))
}
