package gateway

import (
	"errors"

	"github.com/moongate/moongate/core"
)

// streamRequest puts the filters that work on the request's body in its way, the first stage's first.
func (p *plan) streamRequest(x *core.Exchange) error {
	for _, s := range p.bodies {
		if err := s.StreamRequest(x); err != nil {
			return err
		}
	}
	return nil
}

// streamResponse does so with the answer's body, the last stage's first.
func (p *plan) streamResponse(x *core.Exchange) error {
	for i := len(p.bodies) - 1; i >= 0; i-- {
		if err := p.bodies[i].StreamResponse(x); err != nil {
			return err
		}
	}
	return nil
}

// settleBody notes that a filter failed on the request's body when the answer was on its way already. Nobody reads the body any more.
func (g *Gateway) settleBody(x *core.Exchange) {
	fault, ok := errors.AsType[*core.Error](x.Request.Body.Err())
	if !ok || fault.Cause == nil || errors.Is(x.Err, fault) || !x.Response.Started {
		return
	}
	if _, answered := errors.AsType[*core.Answered](fault); answered && x.Response.Source == core.FromFilter {
		return
	}
	x.Err = fault
	g.failing.note(g.opts.Log, x, fault)
}
