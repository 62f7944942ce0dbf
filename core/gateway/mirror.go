package gateway

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/proxy"
	"github.com/moongate/moongate/metrics"
)

// mirror sends the copies that filters asked for. They go as soon as the body is known whole, and nobody waits for them: a body that streams is
// copied while it passes, and what would be too long, or too many at once, is not sent.
func (g *Generation) mirror(x *core.Exchange) {
	var copies []*copied
	for i := range x.Mirrors {
		if c := g.copy(x, &x.Mirrors[i]); c != nil {
			copies = append(copies, c)
		}
	}
	if copies == nil {
		return
	}
	x.Request.Body.Copy(g.config.Scripts.Mirror.MaxBody, func(body []byte, whole bool) {
		for _, c := range copies {
			if !whole {
				c.counts.MirrorDropped()
				g.outbound.release()
				continue
			}
			if len(body) > 0 {
				c.x.Request.Body.Replace(body)
			}
			go g.send(c)
		}
	})
}

// copied is a copy of a request that has a place among those under way.
type copied struct {
	x      *core.Exchange
	to     string
	counts *metrics.Outgoing
}

// copy makes one, nil when there is no room.
func (g *Generation) copy(x *core.Exchange, m *core.Mirror) *copied {
	c := &copied{to: m.Upstream, counts: g.metrics.Outgoing(m.Upstream)}
	if !g.outbound.room(int64(g.config.Scripts.Mirror.InFlight)) {
		c.counts.MirrorDropped()
		return nil
	}
	c.x = x.Shadow()
	h := &c.x.Request.Header
	for _, f := range m.Header.Fields() {
		h.Del(string(f.Name))
	}
	for _, f := range m.Header.Fields() {
		h.Append(f.Name, f.Value, f.Kind)
	}
	h.Add("CDN-Loop", g.outbound.mark)
	return c
}

// send sends a copy and gives its place back.
func (g *Generation) send(c *copied) {
	defer g.outbound.release()
	defer func() { // it runs in a goroutine of its own: no copy ends the process
		if p := recover(); p != nil {
			g.outbound.log.Error("copy of a request failed", "upstream", c.to, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(g.outbound.ending, g.config.Scripts.Mirror.Timeout)
	defer cancel()
	up := g.upstreams[c.to]
	err := fmt.Errorf("there is no upstream %q", c.to)
	if up != nil {
		err = proxy.Mirror(ctx, up, c.x)
	}
	if err == nil {
		c.counts.Mirrored()
		return
	}
	c.counts.MirrorFailed()
	if g.outbound.failing.may(g.outbound.log) {
		g.outbound.log.Warn("copy of a request failed", "upstream", c.to, "error", err.Error(), "request_id", string(c.x.RequestID), "trace_id", string(c.x.TraceID))
	}
}

// room takes a place among the copies under way; release gives it back.
func (o *outbound) room(most int64) bool {
	if o.mirrors.Add(1) > most || o.ending.Err() != nil {
		o.mirrors.Add(-1)
		return false
	}
	o.running.Add(1)
	return true
}

func (o *outbound) release() {
	o.mirrors.Add(-1)
	o.running.Done()
}
