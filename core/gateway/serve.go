package gateway

import (
	"errors"
	"io"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/proxy"
)

// Serve implements server.Handler: one request's way. What is returned is the rest of one that has switched protocols.
func (g *Gateway) Serve(x *core.Exchange, client core.Client) (rest func()) {
	gen := g.begin(x)
	var leg *proxy.Leg
	defer func() {
		if leg != nil { // a panic, which ends the client's connection: what was taken for it goes back all the same
			leg.Abandon()
		}
	}()
	asked := ""
	err := gen.match(x, client)
	pass := gen.plan(x.Route)
	if err == nil {
		err = pass.request(x)
	}
	if err != nil {
		err = blame(x, err)
	}
	if x.Times.Filtered = core.Now(); err == nil && x.Response.Status == 0 {
		leg, err = gen.forward(x, client)
		asked = x.Upstream
	}
	if err == nil {
		err = unopened(x)
	}
	if err != nil {
		g.fail(x, err)
	}
	opened := g.answer(x, client, pass, leg)
	if opened == nil {
		g.conclude(x, pass, leg)
	} else {
		rest = g.carrying(x, pass, leg, opened, asked)
	}
	if leg = nil; rest == nil {
		pass.count(x, asked)
	}
	return rest
}

// blame gives a failure of the gateway's own reading of a body, for a predicate or a filter, to the client that broke it off or was too slow.
func blame(x *core.Exchange, err error) error {
	broken := x.Request.Body.Err()
	if broken == nil || broken == io.EOF || errors.Is(broken, core.ErrBodyTooLarge) {
		return err
	}
	return proxy.BodyFault(broken)
}

// Refuse implements server.Handler: the end of what could not be read as a request.
func (g *Gateway) Refuse(x *core.Exchange, client core.Client, fault *core.Error) {
	gen := g.begin(x)
	x.Times.Filtered = x.Times.Start
	g.fail(x, fault)
	pass := gen.plan(nil)
	g.answer(x, client, pass, nil)
	g.conclude(x, pass, nil)
	pass.count(x, "")
}

func (g *Gateway) begin(x *core.Exchange) *Generation {
	gen := g.current.Load()
	x.Generation = gen
	gen.arrive(x)
	return gen
}

// answer runs the response functions and brings the client what came of them. A tunnel that was opened is the caller's to carry.
func (g *Gateway) answer(x *core.Exchange, client core.Client, pass *plan, leg *proxy.Leg) (opened *http1.Tunnel) {
	if !clientGone(x) {
		g.respond(x, pass)
		if err := unopened(x); err != nil {
			g.fail(x, err)
		}
	}
	if !clientGone(x) { // it may have left while a filter waited
		var err error
		if opened, err = g.send(x, client, pass, leg); err != nil {
			g.cut(x, err)
		}
	}
	return opened
}

// conclude is the end, whatever came before: what was held goes back, and the log is written.
func (g *Gateway) conclude(x *core.Exchange, pass *plan, leg *proxy.Leg) {
	if clientGone(x) {
		g.gone(x)
	}
	if leg != nil {
		leg.Finish()
	}
	if pass.bodies != nil {
		g.settleBody(x)
	}
	x.Times.Done = core.Now()
	x.ReleaseAll()
	for _, s := range pass.stages {
		s.Log(x)
	}
	if leg != nil { // now nobody looks at the answer's fields any more
		leg.Release()
	}
}

// send brings the answer to the client.
func (g *Gateway) send(x *core.Exchange, client core.Client, pass *plan, leg *proxy.Leg) (*http1.Tunnel, error) {
	switch {
	case x.Response.Status == 101 && leg != nil:
		return leg.Switch()
	case leg != nil && streamsEvents(x):
		return nil, g.sendEvents(x, client, pass, leg)
	}
	return nil, g.deliver(x, client, pass)
}

// deliver lets the body pass whatever works on it on its way, and the client have it.
func (g *Gateway) deliver(x *core.Exchange, client core.Client, pass *plan) error {
	if pass.bodies != nil {
		if err := pass.streamResponse(x); err != nil {
			g.fail(x, err)
		}
	}
	if pass.compress != nil {
		if encoder := pass.compress.Begin(x); encoder != nil {
			defer encoder.End()
		}
	}
	return client.Respond()
}

// request runs the request stages. A reply is put into the response, and the way ends there.
func (p *plan) request(x *core.Exchange) error {
	for _, s := range p.stages {
		reply, err := s.Request(x)
		if err != nil {
			return err
		}
		if reply != nil {
			return apply(x, reply)
		}
	}
	return nil
}

// response runs the response stages in reverse; each sees what the one before left.
func (p *plan) response(x *core.Exchange) error {
	for i := len(p.stages) - 1; i >= 0; i-- {
		if err := p.stages[i].Response(x); err != nil {
			return err
		}
	}
	return nil
}

// respond runs the response functions. Each that fails makes the answer a failure, which the ones after it still see.
func (g *Gateway) respond(x *core.Exchange, pass *plan) {
	x.Reached = x.Turn
	for turn := x.Turn + 1; x.Turn < turn; {
		turn = x.Turn
		err := pass.response(x)
		if err == nil {
			return
		}
		g.fail(x, err)
		if x.Route == nil { // without a route there are no turns to go on from
			return
		}
	}
}

// forward sends the exchange where the route or a filter said.
func (g *Generation) forward(x *core.Exchange, client core.Client) (*proxy.Leg, error) {
	up := g.plan(x.Route).upstream
	if name := x.Upstream; name != "" {
		up = g.upstreams[name]
	}
	if x.Endpoint != nil {
		up = g.upstreams[x.Endpoint.Upstream]
	}
	if up == nil {
		return nil, errors.New("a filter chose an upstream that does not exist")
	}
	if x.Request.Upgrade {
		if refusal := proxy.Offer(x, up); refusal != nil {
			return nil, apply(x, refusal)
		}
	}
	if err := g.plan(x.Route).streamRequest(x); err != nil {
		return nil, err
	}
	x.Upstream = up.Name()
	if len(x.Mirrors) > 0 {
		g.mirror(x)
	}
	return proxy.Forward(x, up, client)
}
