package limit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/moongate/moongate/core/redis"
)

// Registry keeps limiters by name while generations of the configuration come and go. A limiter belongs to its name: it
// lives as long as each generation declares it, with its state and counters, and equal settings under another name are
// another limiter. One that changes its kind, its calendar or its store is another too. The zero value is ready; it is safe for
// concurrent use.
type Registry struct {
	mu     sync.Mutex
	named  map[string]*declared
	stores stores
	swept  int
}

// Plan collects the limiters of a generation that is being built beside the running one. Until Commit the running
// generation's limits are untouched; a plan that is not committed leaves no trace. Plans are made and committed one at a
// time; one goroutine uses a plan until it is committed, then Get may be called by any.
type Plan struct {
	registry *Registry
	limiters map[string]*declared
}

// declared is a limiter with its parts, which may be shared by generations.
type declared struct {
	Limiter
	options Options
	base    Limiter            // what Limiter is without tiers
	tiers   map[string]Limiter // by name
}

// stores are the stores in use, by client.
type stores struct {
	mu sync.Mutex
	of map[*redis.Client]*Store
}

// Plan begins a generation's set of limiters.
func (r *Registry) Plan() *Plan {
	return &Plan{registry: r, limiters: make(map[string]*declared)}
}

// Declare gives the limiter of that name: the running one if there is one, whose settings change at Commit, else a new one.
// Declared again with other settings it is an error, as are impossible settings. Ceiling and Clock of a running limiter stay
// what they were.
func (p *Plan) Declare(name string, o Options) (Limiter, error) {
	if d, ok := p.limiters[name]; ok {
		if !d.options.same(o) {
			return nil, fmt.Errorf("limiter %q: already declared with rate %s, burst %d", name, d.options.Rate, d.options.Burst)
		}
		return d.Limiter, nil
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("limiter %q: %w", name, err)
	}
	d := &declared{options: o}
	var err error
	if o.Kind == KindAll || o.Kind == KindFirst {
		err = p.join(d)
	} else {
		err = p.assemble(name, d)
	}
	if err != nil {
		return nil, fmt.Errorf("limiter %q: %w", name, err)
	}
	p.limiters[name] = d
	return d.Limiter, nil
}

// join makes a limiter of others.
func (p *Plan) join(d *declared) (err error) {
	var members []Limiter
	for _, name := range d.options.Members {
		m := p.limiters[name]
		switch {
		case m == nil:
			return fmt.Errorf("there is no limiter %q to join", name)
		case m.options.Kind == KindAll || m.options.Kind == KindFirst || m.options.Kind == KindConcurrency:
			return fmt.Errorf("limiter %q cannot be joined: buckets and quotas can", name)
		}
		members = append(members, m.Limiter)
	}
	if d.options.Kind == KindAll {
		d.Limiter, err = NewAll(members...)
	} else {
		d.Limiter, err = NewFirst(members...)
	}
	return err
}

// assemble takes over what runs of a limiter, and makes the rest.
func (p *Plan) assemble(name string, d *declared) (err error) {
	o := d.options
	old := p.registry.get(name)
	if old != nil && !o.alike(old.options) {
		old = nil
	}
	part := func(running Limiter, t Terms) (Limiter, error) {
		if running != nil {
			return running, nil
		}
		return o.with(t).build(name, &p.registry.stores)
	}
	var running Limiter
	if old != nil {
		running = old.base
	}
	if d.base, err = part(running, Terms{o.Rate, o.Burst}); err != nil {
		return err
	}
	d.Limiter = d.base
	if len(o.Tiers) == 0 && o.KeysFrom == "" {
		return nil
	}
	d.tiers = map[string]Limiter{}
	for tier, t := range o.Tiers {
		running = nil
		if old != nil {
			running = old.tiers[tier]
		}
		if d.tiers[tier], err = part(running, t); err != nil {
			return err
		}
	}
	d.Limiter = p.tiered(name, d, old)
	return nil
}

// tiered puts tiers around a base.
func (p *Plan) tiered(name string, d, old *declared) *Tiered {
	o := d.options
	t := &Tiered{base: d.base, tiers: d.tiers, keys: map[string]Limiter{}}
	for key, tier := range o.Keys {
		t.keys[key] = d.tiers[tier]
	}
	if o.KeysFrom == "" {
		return t
	}
	if old != nil {
		if was, ok := old.Limiter.(*Tiered); ok && maps.Equal(was.tiers, t.tiers) {
			t.lookup = was.lookup
			return t
		}
	}
	t.lookup = newLookup(o.Redis, o.KeysFrom, t.tiers, func(terms Terms) (Limiter, error) { return o.with(terms).build(name, &p.registry.stores) })
	return t
}

// Get gives a declared limiter by name, nil if there is none.
func (p *Plan) Get(name string) Limiter {
	if d := p.limiters[name]; d != nil {
		return d.Limiter
	}
	return nil
}

// Commit makes the plan the running truth: new limiters are kept from now on, changed settings apply at once, limiters that
// the plan does not name are dropped (what still holds one may go on using it). It also gives back memory that full
// buckets hold.
func (p *Plan) Commit() {
	for name, d := range p.limiters {
		d.commit(p.registry.get(name))
	}
	p.registry.mu.Lock()
	defer p.registry.mu.Unlock()
	p.registry.named = p.limiters
	p.registry.stores.keep(p.limiters)
}

// commit makes a limiter follow its settings. Keys that change their tier go on owing there what they owed.
func (d *declared) commit(old *declared) {
	if d.base == nil {
		return
	}
	d.options.change(d.base)
	for name, l := range d.tiers {
		d.options.with(d.options.Tiers[name]).change(l)
	}
	if old != nil && d.options.Redis == nil {
		d.carry(old)
	}
	sweep(d.base)
}

func (d *declared) carry(old *declared) {
	keys := map[string]bool{}
	for _, o := range []*declared{old, d} {
		for key := range o.options.Keys {
			keys[key] = true
		}
	}
	for key := range keys {
		was, is := old.limiterOf(key), d.limiterOf(key)
		if was == is {
			continue
		}
		if has := was.Peek(key, 0); has.Remaining < has.Limit {
			is.Take(key, min(has.Limit-has.Remaining, is.Peek(key, 0).Remaining))
		}
	}
}

func (d *declared) limiterOf(key string) Limiter {
	if l := d.tiers[d.options.Keys[key]]; l != nil {
		return l
	}
	return d.base
}

// sweep forgets what is as good as new.
func sweep(l Limiter) {
	if s, ok := l.(interface{ Sweep() }); ok {
		s.Sweep()
	}
}

// Sweep forgets what is as good as new, a part of each limiter at a time: called once a second it comes through everything within a minute.
func (r *Registry) Sweep() {
	r.mu.Lock()
	named := r.named
	r.swept = (r.swept + 1) % shardCount
	shard := r.swept
	r.mu.Unlock()
	for _, d := range named {
		sweepPart(d.base, shard)
		for _, l := range d.tiers {
			sweepPart(l, shard)
		}
	}
}

func sweepPart(l Limiter, shard int) {
	if s, ok := l.(interface{ sweepShard(i int) }); ok {
		s.sweepShard(shard)
	}
}

// Each calls do for every running limiter, in the order of their names.
func (r *Registry) Each(do func(name string, limiter Limiter)) {
	r.mu.Lock()
	named := r.named
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		do(name, named[name].Limiter)
	}
}

func (r *Registry) get(name string) *declared {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.named[name]
}

// same tells whether two options say the same.
func (o Options) same(other Options) bool {
	o.Clock, o.Wall, other.Clock, other.Wall = nil, nil, nil, nil
	if zoneName(o.Zone) == zoneName(other.Zone) {
		o.Zone, other.Zone = nil, nil
	}
	return reflect.DeepEqual(o, other)
}

// store gives the store of a client, of which there are so many gateways at least.
func (s *stores) store(client *redis.Client, gateways int64) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[*redis.Client]*Store{}
	}
	st := s.of[client]
	if st == nil {
		st = newStore(client)
		s.of[client] = st
	}
	st.least.Store(max(st.least.Load(), gateways))
	return st
}

// keep forgets the stores that no limiter uses any more.
func (s *stores) keep(limiters map[string]*declared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[*redis.Client]bool{}
	for _, d := range limiters {
		used[d.options.Redis] = true
	}
	maps.DeleteFunc(s.of, func(c *redis.Client, _ *Store) bool { return !used[c] })
}
