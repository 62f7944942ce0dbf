package metrics

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Generation says which series may exist.
type Generation struct {
	// Routes and Upstreams are the names of the configuration, anonymous upstreams included.
	Routes    []string
	Upstreams []string
	// Labels are put on every series: names and values of [metrics.labels].
	Labels map[string]string
}

// Plan holds the handles of one generation. Handles that the running generation has too are the same ones; new ones are seen
// by nobody until Commit, and a plan that is not committed leaves no trace. Plans are made and committed one at a time; its
// other methods may be called from any goroutine, before Commit and as long as the generation serves its last requests.
type Plan struct {
	m         *Metrics
	handler   http.Handler
	labels    map[string]string
	routes    map[string]struct{}
	upstreams map[string]struct{}
	retired   bool // another has been committed since
	series    map[seriesKey]*Series
	filters   map[filterKey]*Filter
	scripts   map[string]*ScriptMetric
	outgoing  map[string]*Outgoing // by upstream
}

type (
	seriesKey struct{ route, upstream string }
	filterKey struct{ stage, script string }
)

// Plan begins a generation. The error names the constant label that cannot be.
func (m *Metrics) Plan(g Generation) (*Plan, error) {
	for _, name := range slices.Sorted(maps.Keys(g.Labels)) {
		if !labelName.MatchString(name) || reserved(name) {
			return nil, fmt.Errorf("metrics label %q: no name for a label, or reserved", name)
		}
	}
	handler, err := m.render(g.Labels)
	if err != nil {
		return nil, fmt.Errorf("metrics labels: %w", err)
	}
	return &Plan{
		m:         m,
		handler:   handler,
		labels:    maps.Clone(g.Labels),
		routes:    set(g.Routes),
		upstreams: set(g.Upstreams),
		series:    make(map[seriesKey]*Series),
		filters:   make(map[filterKey]*Filter),
		scripts:   make(map[string]*ScriptMetric),
		outgoing:  make(map[string]*Outgoing),
	}, nil
}

// Series gives the handle for a route and an upstream; upstream "" stands for requests that were answered here. Keep it: the
// look-up takes a lock. Names that the configuration does not have get a handle that counts for nobody, as do names that a
// later generation has dropped.
func (p *Plan) Series(route, upstream string) *Series {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	owner := p.owner()
	key := seriesKey{route, upstream}
	if !owner.allows(key) {
		return new(Series)
	}
	return handle(owner.series, p.m.series, key)
}

// Filter gives the handle for a script, by the name of its filter, in a stage.
func (p *Plan) Filter(stage, script string) *Filter {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	owner, key := p.owner(), filterKey{stage, script}
	if owner != p && owner.filters[key] == nil {
		return new(Filter)
	}
	return handle(owner.filters, p.m.filters, key)
}

// Commit makes the plan's series the ones that are shown, at once and all together. The source is asked at every scrape from
// now on; nil asks nobody.
func (p *Plan) Commit(source Source) {
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.live; old != nil {
		for key, s := range old.series {
			if p.allows(key) {
				p.series[key] = s // the same one, if the plan has it too: both found it in m.series
			}
		}
		for upstream, o := range old.outgoing {
			if p.asks(upstream) {
				p.outgoing[upstream] = o
			}
		}
		p.keepScripts(old)
		old.retired = true
	}
	m.live, m.source = p, source
	m.series, m.filters, m.scripts = maps.Clone(p.series), maps.Clone(p.filters), maps.Clone(p.scripts)
	m.outgoing = maps.Clone(p.outgoing)
	m.handler.Store(&p.handler)
}

// owner is the plan whose names hold: a retired plan's late requests count by the names of the live one.
func (p *Plan) owner() *Plan {
	if p.retired {
		return p.m.live
	}
	return p
}

func (p *Plan) allows(key seriesKey) bool {
	_, route := p.routes[key.route]
	_, upstream := p.upstreams[key.upstream]
	return route && (upstream || key.upstream == "")
}

// handle finds a handle of the plan: its own, the process's, or a new one for both.
func handle[K comparable, V any](plan, all map[K]*V, key K) *V {
	v := plan[key]
	if v == nil {
		if v = all[key]; v == nil {
			v = new(V)
			all[key] = v
		}
		plan[key] = v
	}
	return v
}

// reserved says that a label name means something to Prometheus itself.
func reserved(name string) bool {
	return name == "le" || name == "quantile" || strings.HasPrefix(name, "__")
}

func set(names []string) map[string]struct{} {
	s := make(map[string]struct{}, len(names))
	for _, name := range names {
		s[name] = struct{}{}
	}
	return s
}

// keepScripts takes over what the old plan's scripts have declared, as far as they live on and the plan has not declared it
// anew: a script may declare a metric at its first request. The caller holds the lock.
func (p *Plan) keepScripts(old *Plan) {
	scripts := make(map[string]struct{})
	for key := range p.filters {
		scripts[key.script] = struct{}{}
	}
	for name, s := range old.scripts {
		if p.scripts[name] != nil || slices.ContainsFunc(s.labels, func(label string) bool { _, taken := p.labels[label]; return taken }) {
			continue
		}
		for owner := range s.owners {
			if _, lives := scripts[owner]; lives {
				p.scripts[name] = s
			}
		}
	}
}

// shown gives copies of what a scrape shows.
func (m *Metrics) shown() (map[seriesKey]*Series, map[filterKey]*Filter, Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.live.series), maps.Clone(m.live.filters), m.source
}

func (m *Metrics) shownOutgoing() map[string]*Outgoing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.live.outgoing)
}

func (m *Metrics) shownScripts() map[string]*ScriptMetric {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.live.scripts)
}
