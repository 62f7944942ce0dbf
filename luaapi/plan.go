package luaapi

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/luaapi/vm"
)

// Pipeline is a core.Pipeline whose filters are scripts. It is immutable and safe for concurrent use.
type Pipeline struct {
	// Warnings are what loads but is probably not meant.
	Warnings conf.Errors

	stages  []*stage
	filters []*filter // that run on some route
	byRoute [][]core.Stage
	world   *world
	base    *vm.Base
	config  *conf.Config
	caches  []*cacheHandle
	timers  []*timer
}

// Retire makes every VM of the pipeline leave when it is next given back, with all that its scripts have piled up. It may be called at
// any time.
func (p *Pipeline) Retire() { p.base.Retire() }

// Stages are those that have filters on the route.
func (p *Pipeline) Stages(route *core.Route) []core.Stage {
	if route == nil {
		return p.byRoute[0]
	}
	return p.byRoute[route.ID]
}

// Identity lists the headers that only filters may set.
func (p *Pipeline) Identity() []string { return p.world.identity.names }

// Commit makes the pipeline's limiters, Redis clients, verifiers, timers and the sizes of its stores the running ones. It is called once, when the
// pipeline goes live.
func (p *Pipeline) Commit() {
	p.world.redis.Commit()
	p.world.limits.Commit()
	p.world.verifiers.Commit()
	p.world.shared.commit(p.config, p.caches)
	p.world.timers.replace(p.timers)
}

// makeStages plans every stage for every route, with settings checked and tried.
func (b *builder) makeStages() {
	routes := make([]*conf.Route, len(b.o.Routes)+1)
	for _, rt := range b.o.Routes {
		routes[rt.ID] = b.o.Config.Route(rt.Name)
	}
	before := make([]int, len(routes))
	for _, name := range b.o.Config.Pipeline.Stages {
		st := &stage{name: name, world: b.world, plans: make([]plan, len(routes))}
		collector := &collector{b: b, st: st, known: map[string][]*settings{}, same: map[sameSettings]*settings{}}
		for i, rt := range routes {
			st.plans[i].before = before[i]
			for _, f := range b.filters {
				if f.stage == name {
					collector.plan(&st.plans[i], f, rt)
				}
			}
			before[i] += len(st.plans[i].turns)
		}
		if len(st.scripts) == 0 {
			continue
		}
		st.pool = vm.NewPool(b.base, b.poolOptions(st.name))
		st.timers = vm.NewPool(b.base, timerPool)
		b.stages = append(b.stages, st)
		b.try(st)
	}
}

// collector gathers the distinct settings and the scripts of a stage.
type collector struct {
	b     *builder
	st    *stage
	known map[string][]*settings
	same  map[sameSettings]*settings
}

// sameSettings finds settings that are the very same table, which is what routes without settings of their own have.
type sameSettings struct {
	filter *filter
	table  *conf.Table
}

// plan gives a filter its turn on a route, if it runs there. Without a route those run that run on routes which say nothing else.
func (c *collector) plan(p *plan, f *filter, rt *conf.Route) {
	w, runs := settingsOn(c.b.o.Config.Filter(f.name), f.script, rt)
	if !runs {
		return
	}
	f.index = c.script(f.script)
	set := c.settings(f, w.table, w.pos, w.key)
	if set == nil {
		return
	}
	if f.metrics == nil {
		f.metrics = c.b.o.Metrics.Filter(f.stage, f.name)
	}
	t := turn{filter: f, settings: set, cache: f.handle(set)}
	if rt != nil {
		if t.limiter, t.limits = c.b.limiterOf(rt.Name, f, set, w.table); t.limiter != nil {
			t.key = c.b.keyOf(set)
		}
	}
	p.turns = append(p.turns, t)
	for i, has := range f.script.has {
		p.has[i] = p.has[i] || has
	}
}

// written is a filter's settings on a route as the configuration has them, and where.
type written struct {
	table *conf.Table
	pos   conf.Pos
	key   string
}

// settingsOn gives a filter's settings on a route, nil for none, and whether it runs there.
func settingsOn(cf *conf.Filter, s *script, rt *conf.Route) (w written, runs bool) {
	w = written{cf.Settings, cf.Pos, "filter." + cf.Name}
	if rt == nil {
		return w, cf.Enabled && (s.has[onResponse] || s.has[onResponseChunk] || s.has[onLog])
	}
	w.table, runs = cf.On(rt)
	if over := overrideOf(rt, cf.Name); over != nil {
		w.pos, w.key = over.Pos, "route."+rt.Name+".filter."+cf.Name
	}
	return w, runs
}

func overrideOf(rt *conf.Route, name string) *conf.RouteFilter {
	for i := range rt.Filters {
		if rt.Filters[i].Name == name {
			return &rt.Filters[i]
		}
	}
	return nil
}

// settings finds or makes the distinct settings of a filter's script; nil when they are wrong.
func (c *collector) settings(f *filter, written *conf.Table, pos conf.Pos, key string) *settings {
	if set, ok := c.same[sameSettings{f, written}]; ok {
		return set
	}
	bucket := f.script.name + "\x00" + written.Text()
	for _, set := range c.known[bucket] {
		if set.table.Equal(written) {
			c.same[sameSettings{f, written}] = set
			return set
		}
	}
	faults := len(c.b.errs)
	real := c.b.apply(f.script.schema, key, pos, written)
	var set *settings
	if len(c.b.errs) == faults {
		set = &settings{index: len(c.st.settings), table: written, real: real, where: pos, key: key, filter: f,
			origin: origin{source: f.script.source, libs: c.b.libs, table: written}}
		set.conf = vm.Freeze("conf", real)
		c.st.settings = append(c.st.settings, set)
		c.known[bucket] = append(c.known[bucket], set)
	}
	c.same[sameSettings{f, written}] = set
	return set
}

// script is the index of a script in the stage.
func (c *collector) script(s *script) int {
	for i, known := range c.st.scripts {
		if known == s {
			return i
		}
	}
	c.st.scripts = append(c.st.scripts, s)
	return len(c.st.scripts) - 1
}

// limiterOf gives the limiter of a filter on a route with its name: the one that its settings name, else its own, called ROUTE/FILTER.
func (b *builder) limiterOf(route string, f *filter, set *settings, written *conf.Table) (limit.Limiter, string) {
	rateField, named := f.script.schema.fields["rate"], f.script.schema.fields["limiter"]
	if (rateField == nil || rateField.kind != "rate") && (named == nil || named.kind != "string") {
		return nil, ""
	}
	name := route + "/" + f.name
	pos, key := set.where, set.key
	value, hasRate := written.Get("rate")
	shared, isNamed := written.Get("limiter")
	switch {
	case isNamed:
		name, _ = shared.V.(string)
		pos, key = shared.Pos, set.key+".limiter"
	case !hasRate && named != nil && named.fallback != nil:
		name, isNamed = named.fallback.V.(string)
		key = set.key + ".limiter"
	}
	if !hasRate && rateField != nil && rateField.fallback != nil && !isNamed {
		value, hasRate = *rateField.fallback, true
	}
	switch bucket := b.world.limits.Get(name); {
	case hasRate:
	case !isNamed:
		b.errs.Add(pos, key, `wants rate = "5/s", or limiter = the name of a [limiter.NAME]`)
		return nil, ""
	case bucket == nil:
		b.errs.Add(pos, key, "there is no limiter %q: add a [limiter.%s] with its rate", name, name)
		return nil, ""
	default:
		return bucket, name
	}
	rate, err := value.Rate()
	if err != nil {
		return nil, "" // noted already
	}
	burst := rate.Count
	if n, ok := set.real.RawGetString("burst").(lua.LNumber); ok {
		burst = int64(n)
	}
	return b.declare(pos, key, name, ownOptions(rate, burst)), name
}

// keyOf reads by what a filter with a limiter counts: the setting key, or the client's address.
func (b *builder) keyOf(set *settings) limitBy {
	text, ok := set.real.RawGetString("key").(lua.LString)
	if !ok {
		return limitBy{kind: "ip"}
	}
	by, err := parseKey(string(text))
	if err != nil {
		pos := set.where
		if v, written := set.table.Get("key"); written {
			pos = v.Pos
		}
		b.errs.Add(pos, set.key+".key", "%s", err)
	}
	return by
}

// try loads the stage's scripts into a VM that is thrown away, and runs their init functions with all settings.
func (b *builder) try(st *stage) {
	v := vm.New(b.base)
	m := newMachine(st)
	v.Data = m
	for _, set := range st.settings {
		if _, err := m.prepare(v, set.filter, set); err != nil {
			b.failedInit(set, err)
		}
	}
	b.timers = append(b.timers, b.timersOf(st, m)...)
}

// failedInit notes what init raised: at the setting that it names, or else at the settings as a whole, or where there are none at the
// script's line.
func (b *builder) failedInit(set *settings, err error) {
	if wrong := settingOf(err); wrong != nil {
		b.errs.Add(placeOf(set, wrong.name), set.key+"."+wrong.name, "%s", wrong.text)
		return
	}
	if set.table.Len() == 0 {
		b.raised(set.where, set.key, err)
		return
	}
	b.errs.Add(set.where, set.key, "%s", b.world.mask.text(err.Error()))
}

// placeOf finds where a setting stands, as near as the name of one within others leads.
func placeOf(set *settings, name string) conf.Pos {
	pos, table := set.where, set.table
	for name != "" && table != nil {
		v, ok := table.Get(name)
		rest := ""
		for cut := len(name); !ok && cut > 0; {
			if cut = strings.LastIndexByte(name[:cut], '.'); cut > 0 {
				v, ok = table.Get(name[:cut])
				rest = name[cut+1:]
			}
		}
		if !ok {
			break
		}
		pos, name = v.Pos, rest
		table, _ = v.V.(*conf.Table)
	}
	return pos
}

func (b *builder) pipeline() *Pipeline {
	p := &Pipeline{Warnings: b.warnings, stages: b.stages, world: b.world, base: b.base, config: b.o.Config, timers: b.timers, byRoute: make([][]core.Stage, len(b.o.Routes)+1)}
	for _, f := range b.filters {
		p.caches = slices.AppendSeq(p.caches, maps.Values(f.caches))
	}
	for _, st := range b.stages {
		for id := range st.plans {
			if len(st.plans[id].turns) > 0 {
				p.byRoute[id] = append(p.byRoute[id], st)
			}
		}
	}
	for _, f := range b.filters {
		if f.metrics != nil { // it has a turn somewhere
			p.filters = append(p.filters, f)
		}
	}
	p.shareExchanges()
	return p
}

// shareExchanges marks the routes on which functions of one exchange may want to run at once, because those of its request's body run where it is
// sent.
func (p *Pipeline) shareExchanges() {
	for id := range p.byRoute {
		at := func(st *stage) *plan { return &st.plans[id] }
		if slices.ContainsFunc(p.stages, func(st *stage) bool { return at(st).has[onRequestChunk] }) {
			for _, st := range p.stages {
				at(st).shared = true
			}
		}
	}
}
