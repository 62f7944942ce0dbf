package redis

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// Registry keeps clients by name while generations of the configuration come and go: a client lives as long as each generation declares
// it with equal options. The zero value is ready; it is safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	named   map[string]*Client
	closing sync.WaitGroup
}

// Plan collects the clients of a generation that is being built beside the running one. Until Commit nothing connects and nothing is
// closed; a plan that is not committed leaves no trace. Plans are made and committed one at a time; one goroutine uses a plan until it is
// committed, then Get may be called by any.
type Plan struct {
	registry *Registry
	log      *slog.Logger
	clients  map[string]*Client
}

// Plan begins a generation's set of clients, whose episodes go to log.
func (r *Registry) Plan(log *slog.Logger) *Plan {
	return &Plan{registry: r, log: log, clients: map[string]*Client{}}
}

// Declare gives the client of that name: the running one when its options are equal, else a new one, which connects from Commit on. The
// error is an *OptionError.
func (p *Plan) Declare(name string, o Options) (*Client, error) {
	if c := p.clients[name]; c != nil {
		return nil, fmt.Errorf("redis %q is declared twice", name)
	}
	c := p.registry.get(name)
	if c == nil || !c.options.Equal(o) {
		var err error
		if c, err = New(name, o, p.log); err != nil {
			return nil, err
		}
	}
	p.clients[name] = c
	return c, nil
}

// Get gives a declared client by name, nil if there is none.
func (p *Plan) Get(name string) *Client { return p.clients[name] }

// Names lists the declared clients.
func (p *Plan) Names() []string { return slices.Sorted(maps.Keys(p.clients)) }

// Commit makes the plan the running truth: new clients connect, those that are not in it are closed in the background, once the
// calls under way have ended. Later calls of older generations get Unavailable.
func (p *Plan) Commit() {
	for _, c := range p.clients {
		c.Start()
	}
	p.registry.replace(p.clients)
}

// Close closes every client and waits for all that ever were. Nothing is committed afterwards.
func (r *Registry) Close() {
	r.replace(nil)
	r.closing.Wait()
}

// Each calls do for every running client, in the order of their names.
func (r *Registry) Each(do func(*Client)) {
	r.mu.Lock()
	named := r.named
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		do(named[name])
	}
}

func (r *Registry) get(name string) *Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.named[name]
}

// replace changes the running clients. Those that go are closed when the calls under way have ended.
func (r *Registry) replace(named map[string]*Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, c := range r.named {
		if named[name] != c {
			r.closing.Go(func() {
				c.settle()
				c.Close()
			})
		}
	}
	r.named = named
}
