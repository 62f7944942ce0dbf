package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/compress"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/proxyproto"
	"github.com/moongate/moongate/core/route"
	"github.com/moongate/moongate/core/server"
	"github.com/moongate/moongate/core/upstream"
	"github.com/moongate/moongate/metrics"
)

// build makes a generation of a configuration, beside prev, which may be nil and of which it changes nothing. Errors are conf.Errors.
func (g *Gateway) build(c *conf.Config, prev *Generation) (*Generation, error) {
	gen := &Generation{Number: 1, config: c, access: g.opts.Access, server: g.server, cuts: &g.cuts, outbound: g.outbound, upstreams: map[string]*upstream.Upstream{}, trusted: c.HTTP.TrustedProxies,
		trustUnix: c.HTTP.TrustUnix,
		policy:    policies[c.HTTP.Path], commit: func() {}}
	if prev != nil {
		gen.Number = prev.Number + 1
	}
	var errs conf.Errors
	gen.buildListeners(prev, &errs)
	gen.buildUpstreams(g.opts.Log, prev, &errs)
	routes := gen.buildRoutes(&errs)
	if len(errs) > 0 {
		if g.opts.Faults != nil {
			errs = append(errs, g.opts.Faults(c)...)
		}
		return nil, errs.Err()
	}
	var err error
	if gen.metrics, err = metricsPlan(g.opts.Metrics, gen); err != nil {
		return nil, conf.Errors{{Pos: c.Pos("metrics.labels"), Key: "metrics.labels", Want: err.Error()}}
	}
	built := Built{Pipeline: noFilters{}}
	if g.opts.Pipeline != nil {
		if built, err = g.opts.Pipeline(Parts{c, routes, gen, gen.metrics}); err != nil {
			return nil, err
		}
	}
	if gen.source = built.Source; built.Commit != nil {
		gen.commit = built.Commit
	}
	gen.warnings = slices.Concat(c.Warnings, gen.warnings, built.Warnings)
	gen.buildIdentity(built.Identity)
	gen.buildPlans(built, routes, g.opts.Metrics)
	gen.adoptUpgrades(prev)
	gen.buildCompression()
	return gen, nil
}

func (g *Generation) buildPlans(p core.Pipeline, routes []*core.Route, m *metrics.Metrics) {
	g.plans = []plan{{stages: p.Stages(nil), bodies: bodyStages(p, nil), unrouted: m.Unrouted()}}
	for _, rt := range routes {
		g.plans = append(g.plans, plan{stages: p.Stages(rt), bodies: bodyStages(p, rt), upstream: g.upstreams[rt.Upstream], series: newRouteSeries(g.metrics, rt)})
	}
}

func bodyStages(p core.Pipeline, rt *core.Route) (list []core.BodyStage) {
	for _, s := range p.Stages(rt) {
		if b, ok := s.(core.BodyStage); ok && b.Streams(rt) {
			list = append(list, b)
		}
	}
	return list
}

func (g *Generation) buildCompression() {
	for i := range g.config.Routes {
		if c := &g.config.Routes[i].Compression; c.On {
			g.plans[i+1].compress = compress.New(compress.Options{Types: c.Types, MinSize: c.MinSize, Encodings: c.Encodings})
		}
	}
}

// noFilters is the pipeline of a gateway without a scripting layer.
type noFilters struct{}

func (noFilters) Stages(*core.Route) []core.Stage { return nil }

func (g *Generation) buildUpstreams(log *slog.Logger, prev *Generation, errs *conf.Errors) {
	for _, u := range g.config.Upstreams {
		var before *upstream.Upstream
		if prev != nil {
			before = prev.upstreams[u.Name]
		}
		o := upstreamOptions(&u)
		o.Opened = func(why string) {
			log.Error("upstream is not asked for a while, its circuit breaker is open", "upstream", u.Name, "open", u.Breaker.Open.String(), "error", why)
		}
		o.Closed = func() { log.Info("upstream is asked again, its circuit breaker is closed", "upstream", u.Name) }
		o.Out = func(e *core.Endpoint) {
			log.Warn("endpoint is out, its requests failed", "upstream", u.Name, "endpoint", e.String(), "failures", u.Health.Failures, "out", u.Health.Out.String())
		}
		o.Back = func(e *core.Endpoint) { log.Info("endpoint is back", "upstream", u.Name, "endpoint", e.String()) }
		built, err := upstream.New(o, before)
		if err != nil {
			upstreamError(&u, err, errs)
			continue
		}
		g.upstreams[u.Name] = built
	}
	g.names = slices.Sorted(maps.Keys(g.upstreams))
}

var proxyVersions = map[string]int{conf.ProxyV1: proxyproto.V1, conf.ProxyV2: proxyproto.V2}

func upstreamOptions(u *conf.Upstream) upstream.Options {
	o := upstream.Options{
		Name: u.Name, Balance: u.Balance, SlowStart: u.SlowStart, Host: u.Host, Protocol: u.Protocol, TLS: upstreamTLS(&u.TLS), Proxy: proxyVersions[u.ProxyProtocol], Limits: limits(u.Timeouts),
		Pool:     upstream.PoolOptions{Connections: u.Pool.Connections, Wait: u.Pool.Wait},
		Upgrades: u.Pool.Upgrades,
		Retry:    upstream.RetryOptions{Attempts: u.Retry.Attempts, Status: u.Retry.Status, Budget: u.Retry.Budget},
		Breaker: upstream.BreakerOptions{Failures: u.Breaker.Failures, Errors: u.Breaker.Errors, Window: u.Breaker.Window, Minimum: u.Breaker.Minimum,
			Open: u.Breaker.Open, Probes: u.Breaker.Probes},
		Health: upstream.HealthOptions{Failures: u.Health.Failures, Out: u.Health.Out, Probes: u.Health.Probes},
		Check:  checkOptions(&u.Health.Active),
		Sticky: stickyOptions(&u.Sticky),
	}
	for _, e := range u.Endpoints {
		o.Endpoints = append(o.Endpoints, upstream.Target{URL: e.URL, Weight: e.Weight})
	}
	return o
}

func limits(t conf.Timeouts) core.Limits {
	return core.Limits{Connect: t.Connect, FirstByte: t.FirstByte, IdleRead: t.IdleRead, Total: t.Total, BodyTotal: t.BodyTotal,
		UpgradeIdle: t.UpgradeIdle}
}

var policies = map[string]core.PathPolicy{
	conf.PathStrict: core.PathStrict, conf.PathNormalise: core.PathNormalise, conf.PathRaw: core.PathRaw,
}

func (g *Generation) buildRoutes(errs *conf.Errors) []*core.Route {
	var routes []*core.Route
	var rules []route.Rule
	for i := range g.config.Routes {
		r := &g.config.Routes[i]
		rule := newRule(r)
		rule.Route = &core.Route{
			ID: i + 1, Name: r.Name, Upstream: r.Upstream, Path: policies[r.HTTP.Path], MaxBody: r.HTTP.MaxBody, BodyBuffer: r.HTTP.BodyBuffer,
			Limits: routeLimits(r, g.config.Upstream(r.Upstream)), StripPrefix: r.Strip.Prefix, StripSegments: r.Strip.Segments,
			WebSocket: slices.Contains(r.Upgrades, conf.UpgradeWebSocket),
		}
		if err := completeTarget(rule, r); err != nil {
			errs.Add(r.Pos, "route."+r.Name, "%s", err)
			continue
		}
		routes = append(routes, rule.Route)
		rules = append(rules, *rule)
	}
	table, err := route.New(rules)
	g.table = table
	g.routeErrors(err, errs)
	return routes
}

// routeLimits are the limits that the route itself sets: those that differ from its upstream's. They also hold when a filter sends the
// request elsewhere, where the rest is the other upstream's.
func routeLimits(r *conf.Route, u *conf.Upstream) core.Limits {
	own := limits(r.Timeouts)
	if u == nil {
		return own
	}
	base := limits(u.Timeouts)
	differing := func(a, b time.Duration) time.Duration {
		if a == b {
			return 0
		}
		return a
	}
	return core.Limits{
		Connect: differing(own.Connect, base.Connect), FirstByte: differing(own.FirstByte, base.FirstByte),
		IdleRead: differing(own.IdleRead, base.IdleRead), Total: differing(own.Total, base.Total), BodyTotal: differing(own.BodyTotal, base.BodyTotal),
		UpgradeIdle: differing(own.UpgradeIdle, base.UpgradeIdle),
	}
}

func newRule(r *conf.Route) *route.Rule {
	rule := &route.Rule{Hosts: r.Hosts, Methods: r.Methods, Listeners: r.Listeners, Priority: r.Priority,
		Headers: conditions(r.Headers), Query: conditions(r.Query), Cookies: conditions(r.Cookies), Body: conditions(r.Body)}
	switch r.Path.Kind {
	case conf.PathSegments:
		rule.Path = r.Path.Text
	case conf.PathPrefix:
		rule.PathPrefix = r.Path.Text
	case conf.PathRegex:
		rule.PathRegex = r.Path.Text
	}
	for _, p := range r.Clients {
		rule.Clients = append(rule.Clients, p.String())
	}
	if r.HasWeight {
		rule.Weight = &r.Weight
	}
	if !r.Time.IsZero() {
		rule.Time = route.Window{Daily: r.Time.Daily, Zone: r.Time.Zone, After: stamp(r.Time.After), Before: stamp(r.Time.Before)}
	}
	return rule
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func conditions(list []conf.Match) []route.Condition {
	var out []route.Condition
	for _, m := range list {
		c := route.Condition{Key: m.Name}
		switch m.Kind {
		case conf.Equals, conf.OneOf:
			c.OneOf = m.Values
		case conf.Matches:
			c.Matches = m.Values[0]
		case conf.Exists, conf.Absent:
			there := m.Kind == conf.Exists
			c.Exists = &there
		}
		out = append(out, c)
	}
	return out
}

// completeTarget settles what becomes of the path on its way to the upstream.
func completeTarget(rule *route.Rule, r *conf.Route) (err error) {
	if r.Strip.Matched {
		n, ok := rule.PrefixSegments()
		if !ok {
			return errors.New("strip_prefix = true needs a path with a prefix")
		}
		rule.Route.StripSegments = n
	}
	if r.Rewrite.Pattern != "" {
		if rule.Route.Rewrite, err = regexp.Compile(r.Rewrite.Pattern); err != nil {
			return fmt.Errorf("rewrite.pattern: %w", err)
		}
		rule.Route.RewriteTo = r.Rewrite.To
	}
	return nil
}

// routeErrors gives the table's errors their places in the file.
func (g *Generation) routeErrors(err error, errs *conf.Errors) {
	if err == nil {
		return
	}
	faults := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		faults = many.Unwrap()
	}
	for _, fault := range faults {
		if e, ok := errors.AsType[*route.Error](fault); ok {
			key := "route." + e.Name
			if e.Key != "" {
				key += "." + e.Key
			}
			errs.Add(g.config.Pos(key), key, "%s", e.Want)
			continue
		}
		errs.Add(conf.Pos{File: g.config.File}, "route", "%s", fault)
	}
}

func (g *Generation) buildIdentity(filters []string) {
	g.forbidden = g.isIdentity
	for _, name := range append(slices.Clone(g.config.HTTP.IdentityHeaders), filters...) {
		if n := newIdentityName(name); !slices.Contains(g.identity, n) && len(name) < 64 {
			g.identity = append(g.identity, n)
			g.lengths |= 1 << len(name)
		}
	}
}

func serverSettings(c *conf.Config) server.Settings {
	return server.Settings{
		Head:        headLimits(c),
		HeadTimeout: c.HTTP.HeadTimeout, IdleTimeout: c.HTTP.IdleTimeout, BodyIdle: c.HTTP.BodyIdle,
		MinRate: c.HTTP.MinRate, RateGrace: c.HTTP.RateGrace,
		WebSockets: c.HTTP.WebSockets,
	}
}

func headLimits(c *conf.Config) http1.HeadLimits {
	return http1.HeadLimits{Head: int(c.HTTP.MaxHead), Line: int(c.HTTP.MaxURL)}
}
