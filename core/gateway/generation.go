package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/compress"
	"github.com/moongate/moongate/core/route"
	"github.com/moongate/moongate/core/server"
	"github.com/moongate/moongate/core/upstream"
	"github.com/moongate/moongate/metrics"
)

// Generation is one configuration, built and immutable. Requests end on the generation that they began on. It is the core.Services of its
// filters.
type Generation struct {
	Number int // counts from 1

	config    *conf.Config
	warnings  conf.Errors
	table     *route.Table
	upstreams map[string]*upstream.Upstream
	tls       map[string]*server.TLS // by place of the listener; nil: without
	names     []string               // of upstreams, sorted
	plans     []plan                 // by Route.ID; 0 is no route
	identity  []identityName
	lengths   uint64                 // bit n: some identity name has n bytes
	forbidden func(name []byte) bool // isIdentity, bound once
	trusted   []netip.Prefix
	trustUnix bool            // whoever comes over a Unix socket
	policy    core.PathPolicy // where no route says otherwise
	commit    func()
	metrics   *metrics.Plan
	source    metrics.Source // of the filters; nil: none
	access    *AccessLog
	server    *server.Server // nil where nothing is served
	cuts      *cuts
	outbound  *outbound
}

// plan is what a route's requests pass, looked up once for each.
type plan struct {
	stages   []core.Stage
	bodies   []core.BodyStage // those of stages whose filters work on bodies as they pass
	upstream *upstream.Upstream
	series   *routeSeries     // nil for no route
	unrouted *metrics.Series  // what counts then
	upgrades *upgradeSeries   // nil where none are allowed
	compress *compress.Policy // nil where nothing is compressed
}

// Config is what the generation was built from.
func (g *Generation) Config() *conf.Config { return g.config }

// Warnings are what was accepted and is probably not meant, in the configuration and in scripts.
func (g *Generation) Warnings() conf.Errors { return g.warnings }

func (g *Generation) plan(rt *core.Route) *plan {
	if rt == nil {
		return &g.plans[0]
	}
	return &g.plans[rt.ID]
}

// Upstream implements core.Services.
func (g *Generation) Upstream(name string) core.Upstream {
	if u := g.upstreams[name]; u != nil {
		return u
	}
	return nil
}

// Upstreams implements core.Services.
func (g *Generation) Upstreams() []string { return g.names }

// AccessLine implements core.Services.
func (g *Generation) AccessLine(x *core.Exchange, extra []byte) { g.access.Write(x, extra) }

// EachUpstream visits the upstreams by name, for metrics and status.
func (g *Generation) EachUpstream(visit func(*upstream.Upstream)) {
	for _, name := range slices.Sorted(maps.Keys(g.upstreams)) {
		visit(g.upstreams[name])
	}
}

// Patience implements core.Services.
func (g *Generation) Patience(route *core.Route) time.Duration {
	if p := g.plan(route); p.upstream != nil {
		return route.Limits.Over(p.upstream.Limits()).Total
	}
	return patience
}

// patience is that of the filters that run without a route.
const patience = 15 * time.Second
