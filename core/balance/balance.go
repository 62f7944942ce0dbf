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

// Metered is a Balancer that goes by what endpoints have to carry. Whoever asks the endpoint that it chose uses Take, and tells the endpoint's
// Load what became of the request.
type Metered interface {
	Balancer
	// Take is Pick, and counts a request as under way at the endpoint: its Load.Leave ends it.
	Take(ready []*core.Endpoint, key string) *core.Endpoint
}

// kinds is the table of algorithms by their configured names. Each constructor gets the loads of the upstream's endpoints, by Endpoint.Index.
var kinds = map[string]func(loads []*Load) Balancer{
	"round_robin":     func([]*Load) Balancer { return new(RoundRobin) },
	"random":          func([]*Load) Balancer { return Random{} },
	"consistent_hash": func(loads []*Load) Balancer { return NewConsistentHash(len(loads)) },
	"smooth_weighted": func(loads []*Load) Balancer { return NewSmoothWeighted(len(loads)) },
	"least_conn":      func(loads []*Load) Balancer { return NewLeastConn(loads) },
	"p2c_ewma":        func(loads []*Load) Balancer { return NewP2CEWMA(loads) },
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

// New makes the balancer of that name for endpoints with these loads, by Endpoint.Index.
func New(name string, loads []*Load) (Balancer, error) {
	if name == "" {
		name = Default
	}
	if make, ok := kinds[name]; ok {
		return make(loads), nil
	}
	return nil, fmt.Errorf("unknown balancer %q; known are %s", name, strings.Join(Names(), ", "))
}
