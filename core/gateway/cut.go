package gateway

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/metrics"
)

// cuts counts the requests that the gateway ended because of their client, or of its own end.
type cuts struct{ slowHead, slowBody, slowReader, drained atomic.Uint64 }

func (c *cuts) collect(s *metrics.Scrape) {
	s.Cut(metrics.CutSlowHead, c.slowHead.Load())
	s.Cut(metrics.CutSlowBody, c.slowBody.Load())
	s.Cut(metrics.CutSlowReader, c.slowReader.Load())
	s.Cut(metrics.CutDrained, c.drained.Load())
}

// tooSlow counts a request whose head or body took too long.
func (c *cuts) tooSlow(err error) {
	if errors.Is(err, http1.ErrTimeout) { // only bodies have a cause
		c.slowBody.Add(1)
		return
	}
	c.slowHead.Add(1)
}

// cut notes that an answer did not reach its end.
func (g *Gateway) cut(x *core.Exchange, err error) {
	if x.Err == nil {
		x.Err = err
	}
	if why := x.Lifeline.Why(); why != nil {
		x.Err = why
		g.cuts.drained.Add(1)
		return
	}
	if !readFailed(err) && errors.Is(err, http1.ErrTimeout) {
		x.Err = fmt.Errorf("the client did not take the answer in time: %w", err)
		x.Response.Status = 408
		g.cuts.slowReader.Add(1)
		return
	}
	if x.Lifeline.Broken() || !readFailed(err) {
		x.Response.Status = core.StatusClientGone
		return
	}
	g.failing.note(g.opts.Log, x, err)
}

// clientGone tells whether the gateway found the client gone before there was an answer. An upstream or a filter may answer with that status.
func clientGone(x *core.Exchange) bool {
	return x.Response.Status == core.StatusClientGone && x.Response.Source == core.FromGateway
}

// gone says what became of an exchange whose client's connection has ended, where it was not the client that ended it.
func (g *Gateway) gone(x *core.Exchange) {
	if why := x.Lifeline.Why(); why != nil {
		x.Err, x.Response.Status, x.Response.Source = why, 503, core.FromGateway
		g.cuts.drained.Add(1)
	}
}
