package proxy

import (
	"errors"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/upstream"
)

var (
	errUnasked  = errors.New("upstream switched protocols unasked")
	errProtocol = errors.New("upstream switched to another protocol than WebSocket")
	errAccept   = errors.New("upstream's Sec-WebSocket-Accept does not answer the key")
)

// Offer settles whether x asks up to switch to WebSocket and may, which x.Request.Upgrade says from then on. Any other offer is dropped
// with the hop-by-hop headers, and the request goes on as it is (RFC 9110 section 7.8), but for one that cannot: an extended CONNECT asks for
// nothing else. The reply, when there is one, refuses such a request, or a handshake that RFC 6455 section 4.2.1 calls invalid.
func Offer(x *core.Exchange, up *upstream.Upstream) *core.Reply {
	r := &x.Request
	h := &r.Header
	r.Upgrade = x.Route.WebSocket && r.Method == "GET" && offersWebSocket(h)
	switch {
	case r.Extended && !(r.Upgrade && up.MaySwitch()):
		return core.ErrorReply(core.FromGateway, 403, "no websocket here")
	case !r.Upgrade:
		return nil
	case string(h.Get("Sec-WebSocket-Version")) != "13":
		reply := core.ErrorReply(core.FromGateway, 426, "websocket version is not 13")
		reply.Header.Add("Sec-WebSocket-Version", "13")
		return reply
	case repeated(h, "Sec-WebSocket-Version"):
		return core.ErrorReply(core.FromGateway, 400, "more than one Sec-WebSocket-Version")
	case !http1.ValidWebSocketKey(h.Get("Sec-WebSocket-Key")) || repeated(h, "Sec-WebSocket-Key"):
		return core.ErrorReply(core.FromGateway, 400, "malformed Sec-WebSocket-Key")
	case r.Body.Length() != 0:
		return core.ErrorReply(core.FromGateway, 400, "websocket handshake with a body")
	}
	return nil
}

func offersWebSocket(h *core.Header) bool {
	for _, f := range h.Fields() {
		if f.Kind == core.KindUpgrade && core.HasItem(f.Value, "websocket") {
			return true
		}
	}
	return false
}

func repeated(h *core.Header, name string) bool {
	n := 0
	for _, f := range h.Fields() {
		if core.EqualFoldString(f.Name, name) {
			n++
		}
	}
	return n > 1
}

// accept checks the upstream's 101 (RFC 6455 section 4.1). The connection is of no use for anything else from then on.
func (l *Leg) accept() error {
	l.framing.Close = true
	r, h := &l.x.Request, &l.x.Response.Header
	switch {
	case !r.Upgrade:
		return errUnasked
	case !l.framing.Upgrade || !core.EqualFoldString(h.GetKind(core.KindUpgrade), "websocket"):
		return errProtocol
	case string(h.Get("Sec-WebSocket-Accept")) != http1.WebSocketAccept(r.Header.Get("Sec-WebSocket-Key")) || repeated(h, "Sec-WebSocket-Accept"):
		return errAccept
	}
	return nil
}

// Interrupt makes a pending or later read of the answer's body fail. It is for another goroutine, which makes sure that the leg is not
// finished.
func (l *Leg) Interrupt() {
	if l.round != nil {
		l.round.Cut()
		return
	}
	l.conn.Interrupt()
}

// Switcher is a client whose connection, or stream, can switch protocols. Switch sends x.Response, a 101, as the client's protocol has it, and
// hands the client's end over until the exchange ends; nobody else is told of a client that leaves any more.
type Switcher interface {
	Switch() (http1.End, error)
}

// Switch sends the client the upstream's 101 and joins the two connections; the tunnel is the caller's to run. Afterwards the leg is
// finished as any other. The pool gets its room back at once: what has switched counts as no connection of the pool.
func (l *Leg) Switch() (*http1.Tunnel, error) {
	if !l.x.Lifeline.Release() {
		return nil, core.Fail(core.StatusClientGone, "client left", nil)
	}
	client, err := l.client.(Switcher).Switch()
	if err != nil {
		return nil, err
	}
	if c, ok := client.(*http1.Conn); ok {
		c.Shrink(l.x.Rebase)
	}
	l.conn.Shrink(l.x.Rebase)
	l.switched = true
	l.up.Pool(l.attempt.Endpoint).Detach(l.conn)
	return http1.NewTunnel(client, l.conn.Conn, l.limits.UpgradeIdle), nil
}
