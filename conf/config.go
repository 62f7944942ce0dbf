package conf

import "strings"

// Config is everything that was written, complete with defaults and checked. It is immutable.
type Config struct {
	File      string     `key:"-"` // as it was named
	Listeners []Listener `key:"listener"`
	Admin     Admin
	HTTP      HTTP
	Pipeline  Pipeline
	Scripts   Scripts
	Log       Log
	Metrics   Metrics
	Upstreams []Upstream // as written; those of routes that name a URL behind them
	Redises   []Redis    `key:"redis"` // as written
	Limiters  []Limiter  // as written
	Shared    []SharedStore
	Filters   []Filter // by name; every live script has one
	Routes    []Route  // as written

	// Warnings are what loads but is probably not meant.
	Warnings Errors
	// Sources are all files and folders that the configuration was read from: what --watch looks at. The scripts folder
	// is always one of them, even while it is missing.
	Sources []string

	positions map[string]Pos
}

// Pos returns the place of a dotted key: "http.max_body", "route.user.upstream", "upstream.user.endpoints[1]",
// "filter.jwt.secret", "route.user.filter.jwt.skip". A key that was not written has the place of the nearest table
// around it, in the end the file's first line.
func (c *Config) Pos(key string) Pos {
	for key != "" {
		if pos, ok := c.positions[key]; ok {
			return pos
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return Pos{File: c.File, Line: 1}
}

// Upstream returns the upstream of a name; nil when there is none.
func (c *Config) Upstream(name string) *Upstream { return find(c.Upstreams, name, (*Upstream).name) }

// Limiter returns the limiter of a name; nil when there is none.
func (c *Config) Limiter(name string) *Limiter { return find(c.Limiters, name, (*Limiter).name) }

// Filter returns the filter of a name; nil when there is none.
func (c *Config) Filter(name string) *Filter { return find(c.Filters, name, (*Filter).name) }

// Route returns the route of a name; nil when there is none.
func (c *Config) Route(name string) *Route { return find(c.Routes, name, (*Route).name) }

func (u *Upstream) name() string { return u.Name }
func (l *Limiter) name() string  { return l.Name }
func (f *Filter) name() string   { return f.Name }
func (r *Route) name() string    { return r.Name }

func find[T any](items []T, name string, nameOf func(*T) string) *T {
	for i := range items {
		if nameOf(&items[i]) == name {
			return &items[i]
		}
	}
	return nil
}

// configSection is the top of the file. The order of binding is that of Load, not of this table.
var configSection = section[Config]{
	custom("include", func(*binder, string, Value, *Config) {}),
	{key: "listener", bind: (*binder).bindListeners, keys: listenerSection.all},
	sub("admin", adminSection, func(c *Config, p Pos) *Admin { c.Admin.Pos = p; return &c.Admin }),
	sub("http", httpSection, func(c *Config, p Pos) *HTTP { c.HTTP.Pos = p; return &c.HTTP }),
	sub("pipeline", pipelineSection, func(c *Config, p Pos) *Pipeline { c.Pipeline.Pos = p; return &c.Pipeline }),
	sub("scripts", scriptsSection, func(c *Config, p Pos) *Scripts { c.Scripts.Pos = p; return &c.Scripts }),
	sub("log", logSection, func(c *Config, p Pos) *Log { c.Log.Pos = p; return &c.Log }),
	sub("metrics", metricsSection, func(c *Config, p Pos) *Metrics { c.Metrics.Pos = p; return &c.Metrics }),
	{key: "upstream", bind: (*binder).bindUpstreams, keys: func() []string {
		return append(upstreamSection.all(), "endpoints.url", "endpoints.weight")
	}},
	{key: "redis", bind: (*binder).bindRedis, keys: func() []string { return below("NAME", redisSection.all()) }},
	{key: "limiter", bind: (*binder).bindLimiters, keys: func() []string { return below("NAME", limiterSection.all()) }},
	{key: "shared", bind: (*binder).bindShared, keys: func() []string { return below("NAME", sharedSection.all()) }},
	{key: "filter", bind: (*binder).bindFilters, keys: func() []string { return below("NAME", filterSection.all()) }},
	{key: "route", bind: (*binder).bindRoutes, keys: routeSection.all},
}

// Keys lists every key of the schema, dotted: "http.max_head", "route.timeouts.first_byte", "limiter.NAME.rate". NAME
// stands for names that the user gives.
func Keys() []string { return configSection.all() }

func below(path string, keys []string) []string {
	for i := range keys {
		keys[i] = join(path, keys[i])
	}
	return keys
}
