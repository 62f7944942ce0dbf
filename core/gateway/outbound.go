package gateway

import (
	"context"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
	"github.com/moongate/moongate/metrics"
)

// outbound is what the gateway does by itself, for filters: calls, copies of requests, delays. It lives on over reloads.
type outbound struct {
	log     *slog.Logger
	failing failLog
	origins *upstream.Origins
	mark    string // this process in CDN-Loop
	rules   atomic.Pointer[outboundRules]
	set     conf.ScriptHTTP // what the origins were configured with; guarded by Gateway.reloading

	ending  context.Context // when the gateway has drained
	end     context.CancelFunc
	running sync.WaitGroup // copies under way
	mirrors atomic.Int64

	delayed       atomic.Int64
	delays        atomic.Uint64
	delaysRefused atomic.Uint64
}

// outboundRules say where URLs may lead.
type outboundRules struct {
	allow []netip.Prefix
	own   []netip.AddrPort // where this process listens; an unspecified address stands for all of the machine's
	loops bool
}

func newOutbound(log *slog.Logger) *outbound {
	o := &outbound{log: log}
	x := new(core.Exchange)
	x.NewIDs()
	o.mark = "moongate; id=" + string(x.TraceID)
	o.origins = upstream.NewOrigins(upstream.OriginOptions{})
	o.rules.Store(&outboundRules{})
	o.ending, o.end = context.WithCancel(context.Background())
	return o
}

// longestCall bounds what only the time limit of a call, or the patience of its request, ends sooner.
const longestCall = time.Hour

// apply makes a configuration hold. own are the addresses on which this process listens.
func (o *outbound) apply(c *conf.Config, own []netip.AddrPort) {
	h := c.Scripts.HTTP
	o.rules.Store(&outboundRules{allow: h.Allow, own: own, loops: h.AllowLoops})
	if h.Equal(o.set) {
		return
	}
	o.set = h
	o.origins.Configure(upstream.OriginOptions{
		Limits: core.Limits{Connect: h.Connect, FirstByte: longestCall, IdleRead: longestCall, Total: longestCall, BodyTotal: longestCall},
		Pool:   upstream.PoolOptions{Connections: h.Connections, Wait: longestCall},
		Max:    h.Hosts, Guard: o.guard,
	})
}

// close ends what is under way, once the gateway serves nobody any more.
func (o *outbound) close() {
	o.end()
	o.running.Wait()
	o.origins.Close()
}

func (o *outbound) collect(s *metrics.Scrape) {
	s.Mirrors(o.mirrors.Load())
	s.Delays(o.delayed.Load(), o.delays.Load(), o.delaysRefused.Load())
}

// errLoop answers a request that this gateway has sent itself.
var errLoop = core.Fail(508, "loop detected", nil)

// loops tells whether a request comes from a call of this gateway (RFC 8586), which calls are not to do.
func (o *outbound) isLoop(h *core.Header) bool {
	if h.GetKind(core.KindLoop) == nil || o.rules.Load().loops {
		return false
	}
	for _, f := range h.Fields() {
		if f.Kind != core.KindLoop {
			continue
		}
		for item, rest := core.NextItem(f.Value); item != nil; item, rest = core.NextItem(rest) {
			if string(item) == o.mark {
				return true
			}
		}
	}
	return false
}

// listening are the addresses of a gateway's listeners and of its admin listener, as far as they have one.
func (g *Gateway) listening(c *conf.Config) []netip.AddrPort {
	var own []netip.AddrPort
	for _, l := range g.listeners {
		if at, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
			own = append(own, at)
		}
	}
	return append(own, adminAddress(c.Admin.Address)...)
}

// adminAddress reads an address of the configuration; a name stands for all addresses.
func adminAddress(text string) []netip.AddrPort {
	i := strings.LastIndexByte(text, ':')
	port, err := strconv.ParseUint(text[i+1:], 10, 16)
	if err != nil || port == 0 {
		return nil
	}
	host, err := netip.ParseAddr(strings.Trim(text[:max(i, 0)], "[]"))
	if err != nil {
		host = netip.IPv6Unspecified()
	}
	return []netip.AddrPort{netip.AddrPortFrom(host, uint16(port))}
}
