package auth

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
)

// ID tells apart what options say. No secret can be read from it.
type ID = [sha256.Size]byte

// Background is what a registry keeps running: it fetches until its context ends. Start comes first, and at once.
type Background interface {
	Start()
	Run(ctx context.Context)
	// Ready says why it is not ready to serve, nil when it is.
	Ready() error
}

// Registry keeps verifiers, and what they need, over reloads: what the next generation needs too goes on with all that it remembers.
// The zero value is ready. It is safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	live    map[ID]any
	running map[ID]context.CancelFunc
	ctx     context.Context // of Run; nil: it does not run
	group   sync.WaitGroup
}

// Plan is what one generation needs. It changes nothing before Commit.
type Plan struct {
	registry *Registry
	mu       sync.Mutex
	needed   map[ID]any
	done     bool
}

// Plan begins a plan.
func (r *Registry) Plan() *Plan { return &Plan{registry: r, needed: map[ID]any{}} }

// Get gives what the plan or the running generation has under an id, or makes it. Once the plan was committed it makes no more: ok is
// false for what is not there.
func (p *Plan) Get(id ID, make func() (any, error)) (kept any, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok = p.needed[id]; ok {
		return kept, true, nil
	}
	if p.done {
		return nil, false, nil
	}
	p.registry.mu.Lock()
	kept, ok = p.registry.live[id]
	p.registry.mu.Unlock()
	if !ok {
		p.mu.Unlock() // what is made may need another entry
		kept, err = make()
		p.mu.Lock()
		if err != nil {
			return nil, false, err
		}
		if other, taken := p.needed[id]; taken {
			kept = other
		}
	}
	p.needed[id] = kept
	return kept, true, nil
}

// Commit makes the plan the running one: what it does not need is let go and stopped, what is new in it is started.
func (p *Plan) Commit() {
	p.mu.Lock()
	p.done = true
	needed := maps.Clone(p.needed)
	p.mu.Unlock()
	r := p.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = needed
	for id, cancel := range r.running {
		if _, still := needed[id]; !still {
			cancel()
			delete(r.running, id)
		}
	}
	for _, kept := range needed {
		if b, ok := kept.(Background); ok {
			b.Start()
		}
	}
	r.start()
}

// start runs what is live and does not run yet. It is called with the lock held.
func (r *Registry) start() {
	if r.ctx == nil || r.ctx.Err() != nil {
		return
	}
	for id, kept := range r.live {
		b, ok := kept.(Background)
		if !ok || r.running[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(r.ctx)
		r.running[id] = cancel
		r.group.Go(func() { b.Run(ctx) })
	}
}

// Run keeps everything up to date until the context ends, and returns when all of it has ended.
func (r *Registry) Run(ctx context.Context) {
	r.mu.Lock()
	r.ctx, r.running = ctx, map[ID]context.CancelFunc{}
	r.start()
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	for id, cancel := range r.running {
		cancel()
		delete(r.running, id)
	}
	r.mu.Unlock()
	r.group.Wait()
}

// Ready says why something that the running generation needs is not ready, nil when all is.
func (r *Registry) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kept := range r.live {
		if b, ok := kept.(Background); ok {
			if err := b.Ready(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Each calls do with all key sources of the running generation.
func (r *Registry) Each(do func(*KeySource)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kept := range r.live {
		if s, ok := kept.(*KeySource); ok {
			do(s)
		}
	}
}
