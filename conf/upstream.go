package conf

import (
	"fmt"
	"strings"
	"time"
)

// The balancers.
const (
	RoundRobin     = "round_robin"
	Random         = "random"
	SmoothWeighted = "smooth_weighted"
	ConsistentHash = "consistent_hash"
	LeastConn      = "least_conn"
	P2CEWMA        = "p2c_ewma"
)

// Values of Upstream.Host that are no fixed name.
const (
	HostUpstream = "upstream" // the endpoint's authority
	HostClient   = "client"   // what the client sent
)

// Values of Upstream.Protocol.
const (
	ProtocolH1  = "h1"  // HTTP/1.1
	ProtocolH2  = "h2"  // HTTP/2 over TLS
	ProtocolH2C = "h2c" // HTTP/2 without TLS, known beforehand
)

// Values of Upstream.ProxyProtocol.
const (
	ProxyOff = "off"
	ProxyV1  = "v1" // a line of text
	ProxyV2  = "v2" // binary
)

// Upstream is a service: its endpoints, and how one of them is chosen, reached and judged.
type Upstream struct {
	Pos       Pos
	Name      string // for an anonymous one its URL
	Anonymous bool   `key:"-"` // made for a route that names a URL
	Balance   string // one of the balancers above
	Host      string // HostUpstream, HostClient or a fixed name
	Protocol  string // ProtocolH1, ProtocolH2 or ProtocolH2C

	ProxyProtocol string        // ProxyOff, ProxyV1 or ProxyV2
	SlowStart     time.Duration // in which an endpoint that is new or back gets its share; 0: at once
	Endpoints     []Endpoint
	Timeouts      Timeouts
	Pool          Pool
	Health        Health
	Retry         Retry
	Sticky        Sticky
	Breaker       Breaker
	TLS           UpstreamTLS `key:"tls"`
}

// Pool bounds the connections to one endpoint.
type Pool struct {
	Pos         Pos
	Connections int           // most at once
	Wait        time.Duration // for a free one
	Upgrades    int           // most connections of the upstream, all endpoints together, that have switched protocols; 0: any number
}

// Health is when an endpoint takes no requests: judged by real ones, and by checks where Active says so.
type Health struct {
	Pos      Pos
	Failures int           // so many in a row put it out
	Out      time.Duration // for so long
	Probes   int           // requests at once that try it afterwards
	Active   Active
}

// Equal tells whether two upstreams say the same, wherever they stand.
func (u *Upstream) Equal(other *Upstream) bool { return same(u, other) }

func defaultUpstream() Upstream {
	return Upstream{
		Balance:  RoundRobin,
		Host:     HostUpstream,
		Protocol: ProtocolH1,

		ProxyProtocol: ProxyOff,

		Timeouts: defaultTimeouts(),
		Pool:     Pool{Connections: 256, Wait: time.Second},
		Health:   Health{Failures: 5, Out: 10 * time.Second, Probes: 1},
		Retry:    defaultRetry(),
		Sticky:   defaultSticky(),
		Breaker:  defaultBreaker(),
	}
}

var upstreamSection = section[Upstream]{
	text("name", func(u *Upstream) *string { return &u.Name }, upstreamName),
	oneOf("balance", func(u *Upstream) *string { return &u.Balance }, RoundRobin, Random, SmoothWeighted, LeastConn, P2CEWMA, ConsistentHash),
	text("host", func(u *Upstream) *string { return &u.Host }, upstreamHost),
	oneOf("protocol", func(u *Upstream) *string { return &u.Protocol }, ProtocolH1, ProtocolH2, ProtocolH2C),
	oneOf("proxy_protocol", func(u *Upstream) *string { return &u.ProxyProtocol }, ProxyOff, ProxyV1, ProxyV2),
	duration("slow_start", func(u *Upstream) *time.Duration { return &u.SlowStart }, shortest, longest),
	custom("endpoints", (*binder).bindEndpoints),
	sub("timeouts", timeoutsSection, func(u *Upstream, p Pos) *Timeouts { u.Timeouts.Pos = p; return &u.Timeouts }),
	sub("pool", poolSection, func(u *Upstream, p Pos) *Pool { u.Pool.Pos = p; return &u.Pool }),
	sub("health", healthSection, func(u *Upstream, p Pos) *Health { u.Health.Pos = p; return &u.Health }),
	sub("sticky", stickySection, func(u *Upstream, p Pos) *Sticky { u.Sticky.Pos = p; return &u.Sticky }),
	sub("retry", retrySection, func(u *Upstream, p Pos) *Retry { u.Retry.Pos = p; return &u.Retry }),
	sub("breaker", breakerSection, func(u *Upstream, p Pos) *Breaker { u.Breaker.Pos = p; return &u.Breaker }),
	sub("tls", upstreamTLSSection, func(u *Upstream, p Pos) *UpstreamTLS { u.TLS.Pos = p; return &u.TLS }),
}

var poolSection = section[Pool]{
	integer("connections", func(p *Pool) *int { return &p.Connections }, 1, 65536),
	duration("wait", func(p *Pool) *time.Duration { return &p.Wait }, 0, longest),
	integer("upgrades", func(p *Pool) *int { return &p.Upgrades }, 0, 1<<31-1),
}

var healthSection = section[Health]{
	integer("failures", func(h *Health) *int { return &h.Failures }, 1, 1<<31-1),
	duration("out", func(h *Health) *time.Duration { return &h.Out }, shortest, longest),
	integer("probes", func(h *Health) *int { return &h.Probes }, 1, 65536),
	sub("active", activeSection, bindActive),
}

// bindUpstreams reads [[upstream]].
func (b *binder) bindUpstreams(key string, v Value, c *Config) {
	first := map[string]Pos{}
	for i, t := range b.tables(key, v) {
		u := defaultUpstream()
		u.Pos = t.Pos
		path := b.label(key, i, t, "name")
		upstreamSection.bind(b, path, t, &u)
		b.checkUpstream(path, &u)
		if u.Name == "" {
			b.misname(t)
			continue
		}
		if pos, twice := first[u.Name]; twice {
			b.errs.Add(b.where(path+".name", t.Pos), key, "the name %q is taken by the upstream in %s", u.Name, pos)
			continue
		}
		first[u.Name] = t.Pos
		c.Upstreams = append(c.Upstreams, u)
	}
}

// misname remembers an upstream whose name is none, or could not be read, which may be any.
func (b *binder) misname(t *Table) {
	v, written := t.Get("name")
	name, ok := v.V.(string)
	switch {
	case written && (v.broken || !ok):
		b.misnamed = append(b.misnamed, "")
	case written:
		b.misnamed = append(b.misnamed, name)
	}
}

// label gives an item of a list of tables its dotted key: by the first of some texts in it that name it, or else by its
// number.
func (b *binder) label(key string, i int, t *Table, naming ...string) string {
	path := fmt.Sprintf("%s[%d]", key, i)
	for _, word := range naming {
		v, _ := t.Get(word)
		if name, ok := v.V.(string); ok && name != "" && len(name) <= maxName {
			if named := join(key, name); !b.written(named) {
				path = named
			}
			break
		}
	}
	b.note(path, t.Pos)
	return path
}

func (b *binder) checkUpstream(path string, u *Upstream) {
	if !b.written(path + ".name") {
		b.errs.Add(u.Pos, path, `has no name: write name = "..."`)
	}
	if !b.written(path + ".endpoints") {
		b.errs.Add(u.Pos, path, `has no endpoints: write endpoints = ["http://host:port"]`)
	}
	b.checkTimeouts(path+".timeouts", &u.Timeouts)
	b.within(path+".pool.wait", &u.Pool.Wait, path+".timeouts.total", u.Timeouts.Total)
	b.checkWeights(path+".endpoints", u)
	b.checkRetry(path+".retry", &u.Retry)
	b.checkBreaker(path+".breaker", &u.Breaker)
	b.checkActive(path+".health.active", u)
	b.checkSticky(path+".sticky", &u.Sticky)
	b.checkUpstreamTLS(path, u)
	if u.SlowStart > 0 && u.Balance == ConsistentHash {
		b.errs.Add(b.pos[path+".slow_start"], path+".slow_start", "does not go with balance = %q, which sends a key to one endpoint always: take one of the two away", u.Balance)
	}
	if u.ProxyProtocol != ProxyOff && u.Protocol != ProtocolH1 {
		b.errs.Add(b.pos[path+".proxy_protocol"], path+".proxy_protocol", "does not go with protocol = %q, whose connections many clients share: take one of the two away", u.Protocol)
	}
}

// checkWeights warns of weights that the balancer does not look at, and of an upstream whose endpoints all are drained.
func (b *binder) checkWeights(key string, u *Upstream) {
	drained := 0
	for _, e := range u.Endpoints {
		if e.Weight > 1 && (u.Balance == RoundRobin || u.Balance == Random) {
			b.warn.Add(e.Pos, key, "the weight %d of %s counts for nothing with %s: use smooth_weighted or take it away", e.Weight, e.URL, u.Balance)
		}
		if e.Weight == 0 {
			drained++
		}
	}
	if drained > 0 && drained == len(u.Endpoints) {
		b.warn.Add(u.Pos, key, "all weights are 0, so %s answers 503", u.Name)
	}
}

// maxName bounds the length of names in bytes.
const maxName = 128

// displayName checks a name that is shown in logs and metrics.
func displayName(text string) string {
	if text == "" || len(text) > maxName || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '"' }) {
		return fmt.Sprintf("%q is no name: write up to %d characters without spaces and quotes", shorten(text), maxName)
	}
	return ""
}

func upstreamName(text string) string {
	if strings.Contains(text, "://") || isUnix(text) {
		return fmt.Sprintf("%q is a URL: give the upstream a name and write its URLs into endpoints", shorten(text))
	}
	return displayName(text)
}

func upstreamHost(text string) string {
	if text == HostUpstream || text == HostClient {
		return ""
	}
	if authority(text) == "" {
		return fmt.Sprintf(`%q is no host: write "upstream", "client" or a name such as "api.example.com"`, shorten(text))
	}
	return ""
}
