package limit

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Registry keeps limiters by name while generations of the configuration come and go. A limiter belongs to its name: it
// lives as long as each generation declares it, with its buckets and counters, and equal settings under another name are
// another limiter. The zero value is ready; it is safe for concurrent use.
type Registry struct {
	mu    sync.Mutex
	named map[string]*TokenBucket
}

// Plan collects the limiters of a generation that is being built beside the running one. Until Commit the running
// generation's limits are untouched; a plan that is not committed leaves no trace. Plans are made and committed one at a
// time; one goroutine uses a plan until it is committed, then Get may be called by any.
type Plan struct {
	registry *Registry
	limiters map[string]declared
}

type declared struct {
	*TokenBucket
	options Options
}

// Plan begins a generation's set of limiters.
func (r *Registry) Plan() *Plan {
	return &Plan{registry: r, limiters: make(map[string]declared)}
}

// Declare gives the limiter of that name: the running one if there is one, whose settings change at Commit, else a new one.
// Declared again with other settings it is an error, as are impossible settings. Ceiling and Clock of a running limiter stay
// what they were.
func (p *Plan) Declare(name string, o Options) (*TokenBucket, error) {
	if d, ok := p.limiters[name]; ok {
		if d.options.Rate != o.Rate || d.options.Burst != o.Burst {
			return nil, fmt.Errorf("limiter %q: already declared with rate %s, burst %d", name, d.options.Rate, d.options.Burst)
		}
		return d.TokenBucket, nil
	}
	bucket, err := NewTokenBucket(o)
	if err != nil {
		return nil, fmt.Errorf("limiter %q: %w", name, err)
	}
	if running := p.registry.get(name); running != nil {
		bucket = running
	}
	p.limiters[name] = declared{bucket, o}
	return bucket, nil
}

// Get gives a declared limiter by name, nil if there is none.
func (p *Plan) Get(name string) *TokenBucket { return p.limiters[name].TokenBucket }

// Commit makes the plan the running truth: new limiters are kept from now on, changed settings apply at once, limiters that
// the plan does not name are dropped (what still holds one may go on using it). It also gives back memory that full
// buckets hold.
func (p *Plan) Commit() {
	named := make(map[string]*TokenBucket, len(p.limiters))
	for name, d := range p.limiters {
		_ = d.Set(d.options.Rate, d.options.Burst) // checked by Declare
		d.Sweep()
		named[name] = d.TokenBucket
	}
	p.registry.mu.Lock()
	defer p.registry.mu.Unlock()
	p.registry.named = named
}

// Each calls do for every running limiter, in the order of their names.
func (r *Registry) Each(do func(name string, limiter *TokenBucket)) {
	r.mu.Lock()
	named := r.named
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		do(name, named[name])
	}
}

func (r *Registry) get(name string) *TokenBucket {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.named[name]
}
