package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/proxy"
	"github.com/moongate/moongate/core/upstream"
)

// Call implements core.Services.
func (g *Generation) Call(ctx context.Context, x *core.Exchange, calls ...*core.Call) {
	for _, c := range calls {
		g.outbound.sign(x, c)
	}
	if len(calls) == 1 {
		g.call(ctx, x, calls[0])
		return
	}
	var all sync.WaitGroup
	for _, c := range calls {
		all.Go(func() { g.call(ctx, x, c) })
	}
	all.Wait()
}

// sign says who asks, and what is needed to notice a loop.
func (o *outbound) sign(x *core.Exchange, c *core.Call) {
	if !c.Header.Has("User-Agent") {
		c.Header.Add("User-Agent", "moongate")
	}
	if x != nil {
		for _, f := range x.Request.Header.Fields() {
			if f.Kind == core.KindLoop {
				c.Header.Append(f.Name, f.Value, f.Kind)
			}
		}
	}
	c.Header.Add("CDN-Loop", o.mark)
}

func (g *Generation) call(ctx context.Context, x *core.Exchange, c *core.Call) {
	counts := g.metrics.Outgoing(c.Upstream)
	began := core.Now()
	err := g.ask(ctx, x, c)
	if err == nil {
		counts.Called(core.Now().Sub(began))
		return
	}
	counts.CallFailed()
	c.Err = toldScript(c, err)
	g.outbound.noteCall(x, c, err)
}

func (g *Generation) ask(ctx context.Context, x *core.Exchange, c *core.Call) (err error) {
	defer func() { // it may run in a goroutine of its own: no call ends the process
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	up, err := g.asked(c)
	if err != nil {
		return err
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, slow{c.Timeout})
		defer cancel()
	}
	var trace []byte
	if x != nil {
		trace = x.TraceID
	}
	if err = proxy.Call(ctx, up, c, trace); err != nil && ctx.Err() != nil {
		return waitEnded{context.Cause(ctx)}
	}
	return err
}

// waitEnded says that a call ended because its time did, or its caller's, in words for a script.
type waitEnded struct{ cause error }

func (e waitEnded) Error() string { return e.cause.Error() }

// asked finds whom a call is for.
func (g *Generation) asked(c *core.Call) (*upstream.Upstream, error) {
	if c.Upstream == "" {
		return g.outbound.origins.Get(c.Scheme, c.Authority)
	}
	if up := g.upstreams[c.Upstream]; up != nil {
		return up, nil
	}
	return nil, fmt.Errorf("there is no upstream %q", c.Upstream)
}

// slow is the end of a call's own time.
type slow struct{ limit time.Duration }

func (s slow) Error() string { return "timed out after " + s.limit.String() }

// toldScript words what became of a call. A script may hand that on to a client, so it names the upstream and no address.
func toldScript(c *core.Call, err error) error {
	who := c.Upstream
	if who == "" {
		who = c.Authority
	}
	text := "failed"
	fault, is := errors.AsType[*core.Error](err)
	switch {
	case errors.Is(err, errPrivate), errors.Is(err, errOwn):
		text = "address not allowed"
	case errors.Is(err, core.ErrBodyTooLarge):
		text = fmt.Sprintf("answer longer than %d bytes", c.MaxAnswer)
	case is:
		text = fault.Public
	case errors.As(err, new(waitEnded)):
		text = err.Error()
	}
	return errors.New(who + ": " + text)
}

// noteCall logs why a call got no answer.
func (o *outbound) noteCall(x *core.Exchange, c *core.Call, err error) {
	if !o.failing.may(o.log) {
		return
	}
	attrs := []any{"upstream", c.Upstream, "method", c.Method, "error", err.Error()}
	if c.Upstream == "" {
		attrs[0], attrs[1] = "host", c.Authority
	}
	if x != nil {
		attrs = append(attrs, "request_id", string(x.RequestID), "trace_id", string(x.TraceID))
	}
	o.log.Warn("call failed", attrs...)
}
