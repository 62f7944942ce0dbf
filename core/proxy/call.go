package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

// callRoute is the route of requests that no client sent.
var callRoute = core.Route{Name: "call"}

// Call makes a request of the gateway's own and reads the answer to its end, into c.Answer. It goes the way of all requests: the balancer
// chooses, the endpoint's health hears, its pool gives the connection, safe tries are repeated. traceID may be nil. The end of ctx ends
// it, and then the error is ctx's cause; else it is a *core.Error, or core.ErrBodyTooLarge.
func Call(ctx context.Context, up *upstream.Upstream, c *core.Call, traceID []byte) error {
	x := new(core.Exchange)
	x.Route, x.TraceID, x.HashKey = &callRoute, traceID, c.Key
	x.Times.Start = core.Now()
	x.Times.Filtered = x.Times.Start
	r := &x.Request
	r.Own, r.Method, r.Scheme = true, c.Method, c.Scheme
	r.RawPath, r.Path, r.TargetPath = c.Path, c.Path, c.Path
	r.TargetQuery, r.QuerySet = c.Query, true
	r.Header.CopyFrom(&c.Header)
	if r.Body.Attach(nil, 0); c.Body != nil {
		r.Body.Replace(c.Body)
	}
	stop := context.AfterFunc(ctx, x.Lifeline.Break)
	defer stop()
	err := ask(x, up, c)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// Mirror sends an exchange that is a copy of another, and reads its answer for nobody, as far as that keeps the connection. The end of ctx
// ends it.
func Mirror(ctx context.Context, up *upstream.Upstream, x *core.Exchange) error {
	x.Times.Start = core.Now()
	x.Times.Filtered = x.Times.Start
	stop := context.AfterFunc(ctx, x.Lifeline.Break)
	defer stop()
	leg, err := Forward(x, up, nobody{})
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, &x.Response.Body, maxUnread)
	leg.Finish()
	leg.Release()
	if err == io.EOF {
		err = nil
	}
	return err
}

// maxUnread is how much of an answer is read that nobody wants.
const maxUnread = 1 << 20

func ask(x *core.Exchange, up *upstream.Upstream, c *core.Call) error {
	leg, err := Forward(x, up, nobody{})
	if err != nil {
		return err
	}
	body, err := x.Response.Body.Buffer(c.MaxAnswer)
	if err == nil {
		c.Answer.Take(&x.Response, body)
	}
	leg.Finish()
	leg.Release()
	if err != nil && !errors.Is(err, core.ErrBodyTooLarge) {
		return core.Fail(502, "upstream closed the connection", fmt.Errorf("%s: %w", up.Name(), err))
	}
	return err
}

// nobody is the client of requests that no client sent.
type nobody struct{}

func (nobody) Continue() error                { return nil }
func (nobody) Inform(int, *core.Header) error { return nil }
func (nobody) Respond() error                 { return nil }
func (nobody) StopBody()                      {}
func (nobody) ResumeBody() bool               { return true }
func (nobody) Ease()                          {}
