package gateway

import (
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

// arrive settles what must be true of a request before anybody looks at it: whose it is, which connection's headers are gone, which
// names only filters may set.
func (g *Generation) arrive(x *core.Exchange) {
	h := &x.Request.Header
	if h.GetKind(core.KindConnection) != nil {
		h.DropNominated()
	}
	g.dropIdentity(h)
	if x.Request.Body.Length() < 0 {
		x.Request.Body.Forbidden = g.forbidden
	}
	g.hearProxies(x)
	identify(x)
}

// identityName is a header name as CGI and its kin would spell it: whatever is no letter or digit is one.
type identityName struct{ folded string }

func newIdentityName(name string) identityName {
	b := []byte(name)
	for i := range b {
		b[i] = fold(b[i])
	}
	return identityName{string(b)}
}

func fold(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 0x20
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	}
	return '_'
}

func (n identityName) matches(name []byte) bool {
	if len(name) != len(n.folded) {
		return false
	}
	for i := range name {
		if fold(name[i]) != n.folded[i] {
			return false
		}
	}
	return true
}

// dropIdentity removes every spelling of the names that tell an upstream who the caller is.
func (g *Generation) dropIdentity(h *core.Header) {
	for _, f := range h.Fields() {
		if g.isIdentity(f.Name) {
			h.DelFunc(func(f *core.Field) bool { return g.isIdentity(f.Name) })
			return
		}
	}
}

func (g *Generation) isIdentity(name []byte) bool {
	if len(name) > 63 || g.lengths&(1<<len(name)) == 0 {
		return false
	}
	for _, n := range g.identity {
		if n.matches(name) {
			return true
		}
	}
	return false
}

// identify gives the request its ids: the client's where it may be believed, random ones otherwise.
func identify(x *core.Exchange) {
	h := &x.Request.Header
	if id := h.GetKind(core.KindRequestID); believable(id) {
		x.RequestID = id
	}
	if id := h.GetKind(core.KindTraceID); believable(id) {
		x.TraceID = id
	}
	if trace := traceID(h.GetKind(core.KindTraceParent)); trace != nil {
		x.TraceID = trace
	}
	x.NewIDs()
}

// believable tells whether a client's id has 1 to 128 of [A-Za-z0-9._-].
func believable(id []byte) bool {
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return len(id) > 0 && len(id) <= 128
}

// traceID takes the trace-id out of a traceparent (W3C Trace Context section 3.2); nil when it is not a valid one.
func traceID(p []byte) []byte {
	if len(p) < 55 || p[2] != '-' || p[35] != '-' || p[52] != '-' || string(p[:2]) == "ff" || string(p[:2]) == "00" && len(p) != 55 ||
		len(p) > 55 && p[55] != '-' {
		return nil
	}
	zero := true
	for i, c := range p[:55] {
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil
		}
		zero = zero && (i < 3 || i > 34 || c == '0')
	}
	if zero {
		return nil
	}
	return p[3:35]
}

var (
	errNoRoute  = core.Fail(404, "no route", nil)
	errTooLarge = core.Error{Status: 413, Public: "request body too large", Close: true}
)

// match finds the route and makes what holds on it hold. client is told when its body is needed; nil: there is none.
func (g *Generation) match(x *core.Exchange, client route.Continuer) error {
	r := &x.Request
	if g.outbound.isLoop(&r.Header) {
		return errLoop
	}
	path, err := route.Canonical(r.RawPath, x.Scratch(4*len(r.RawPath)+2))
	if err != nil {
		return err
	}
	r.Path = path.Seen
	rt, err := g.table.Match(x, client)
	if err != nil {
		return err
	}
	policy := g.policy
	if rt != nil {
		policy = rt.Path
	}
	if r.RawPath, err = path.Under(policy); err != nil {
		return err
	}
	if rt == nil {
		return errNoRoute
	}
	if length := r.Body.Length(); length > rt.MaxBody || r.Body.Taken() > rt.MaxBody {
		tooLarge := errTooLarge
		return &tooLarge
	}
	x.Route, r.Body.Max = rt, rt.MaxBody
	return nil
}
