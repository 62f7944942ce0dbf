package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/proxy"
	"github.com/moongate/moongate/core/upstream"
)

const key = "dGhlIHNhbXBsZSBub25jZQ=="

// handshake makes the request one that asks for a WebSocket, on a route that allows it.
func handshake(lines ...string) func(*core.Exchange) {
	return func(x *core.Exchange) {
		x.Route.WebSocket = true
		with(append([]string{"Upgrade", "websocket"}, lines...)...)(x)
	}
}

func TestOffersOfWebSocketsAreSettled(t *testing.T) {
	valid := []string{"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", key}
	for name, c := range map[string]struct {
		method, protocol string
		change           func(x *core.Exchange)
		upgrade          bool
		status           int // of the refusal, 0: there is none
	}{
		"a handshake":             {"GET", "h1", handshake(valid...), true, 0},
		"no offer":                {"GET", "h1", func(x *core.Exchange) { x.Route.WebSocket = true }, false, 0},
		"another protocol":        {"GET", "h1", func(x *core.Exchange) { x.Route.WebSocket = true; with("Upgrade", "h2c")(x) }, false, 0},
		"one of several":          {"GET", "h1", func(x *core.Exchange) { handshake(valid...)(x); x.Request.Header.Set("Upgrade", "h2c, WebSocket") }, true, 0},
		"another method":          {"POST", "h1", handshake(valid...), false, 0},
		"a route without":         {"GET", "h1", func(x *core.Exchange) { handshake(valid...)(x); x.Route.WebSocket = false }, false, 0},
		"another version":         {"GET", "h1", handshake("Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", key), true, 426},
		"no key":                  {"GET", "h1", handshake("Sec-WebSocket-Version", "13"), true, 400},
		"a key that is none":      {"GET", "h1", handshake("Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "abc"), true, 400},
		"two keys":                {"GET", "h1", handshake(append(valid, "Sec-WebSocket-Key", key)...), true, 400},
		"a body":                  {"GET", "h1", func(x *core.Exchange) { handshake(valid...)(x); carrying(strings.NewReader("x"), 1)(x) }, true, 400},
		"extended":                {"GET", "h1", func(x *core.Exchange) { handshake(valid...)(x); x.Request.Extended = true }, true, 0},
		"extended, no such route": {"GET", "h1", func(x *core.Exchange) { with("Upgrade", "websocket")(x); x.Request.Extended = true }, false, 403},
		"extended, to HTTP/2":     {"GET", "h2c", func(x *core.Exchange) { handshake(valid...)(x); x.Request.Extended = true }, true, 403},
	} {
		o := options(refused(t))
		o.Protocol = c.protocol
		x := request(c.method, "/", c.change)
		reply, status := proxy.Offer(x, open(t, o)), 0
		if reply != nil {
			status = reply.Status
		}
		if status != c.status || x.Request.Upgrade != c.upgrade {
			t.Errorf("%s: refused with %d, offered on: %v", name, status, x.Request.Upgrade)
		}
		if status == 426 && string(reply.Header.Get("Sec-WebSocket-Version")) != "13" {
			t.Errorf("%s: the refusal does not say which version", name)
		}
	}
}

// tunnelled is a client whose connection can switch.
type tunnelled struct {
	client
	end *http1.Conn
}

func (c *tunnelled) Switch() (http1.End, error) { return c.end, nil }

// TestAnAnswerOfHandshakesIsChecked before anybody has switched.
func TestAnAnswerOfHandshakesIsChecked(t *testing.T) {
	accept := http1.WebSocketAccept([]byte(key))
	for name, c := range map[string]struct {
		answer string
		want   int
	}{
		"good":             {"101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + accept, 101},
		"refused":          {"403 No\r\nContent-Length: 0", 403},
		"another key's":    {"101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x" + accept[1:], 502},
		"without accept":   {"101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket", 502},
		"twice":            {"101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket" + strings.Repeat("\r\nSec-WebSocket-Accept: "+accept, 2), 502},
		"to another":       {"101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: " + accept, 502},
		"not nominated":    {"101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + accept, 502},
		"in other letters": {"101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: " + accept, 101},
	} {
		up := open(t, options(scripted(t, func(nc net.Conn) {
			if r, err := http.ReadRequest(bufio.NewReader(nc)); err == nil && r.Header.Get("Upgrade") == "websocket" && r.Header.Get("Connection") == "Upgrade" {
				_, _ = fmt.Fprintf(nc, "HTTP/1.1 %s\r\n\r\n", c.answer)
				_, _ = io.Copy(io.Discard, nc)
			}
		})))
		x := request("GET", "/", handshake("Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", key))
		x.Request.Upgrade = true
		for range 2 { // the place among the upstream's upgrades comes back
			leg, err := proxy.Forward(x, up, new(tunnelled))
			status := x.Response.Status
			if err != nil {
				status = err.(*core.Error).Status
			} else {
				leg.Abandon()
			}
			if status != c.want {
				t.Errorf("%s: %d %v, want %d", name, status, err, c.want)
			}
			x = request("GET", "/", handshake("Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", key))
			x.Request.Upgrade = true
		}
	}
}

func TestASwitchLeavesThePoolAndHoldsAPlaceAmongTheUpgrades(t *testing.T) {
	o := options(scripted(t, func(nc net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(nc)); err == nil {
			_, _ = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "+http1.WebSocketAccept([]byte(key))+"\r\n\r\n")
			_, _ = io.Copy(io.Discard, nc)
		}
	}))
	o.Pool.Connections = 1
	up := open(t, o)
	ask := func() (*core.Exchange, *proxy.Leg, *tunnelled, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		c := &tunnelled{end: http1.NewConn(near)}
		x := request("GET", "/", handshake("Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", key))
		x.Request.Upgrade = true
		leg, err := proxy.Forward(x, up, c)
		return x, leg, c, err
	}
	_, leg, _, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leg.Switch(); err != nil {
		t.Fatal(err)
	}
	if s := up.Pool(up.Endpoints()[0]).Stats(); s.Open != 0 {
		t.Errorf("the pool counts %d connections", s.Open)
	}
	if _, _, _, err := ask(); err == nil || err.(*core.Error).Status != 503 {
		t.Errorf("beyond the upgrades that the upstream may have: %v", err)
	}
	leg.Abandon()
	x, leg, _, err := ask()
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	x.Lifeline.Break()
	if _, err := leg.Switch(); err == nil || err.(*core.Error).Status != core.StatusClientGone {
		t.Errorf("with a client that has left: %v", err)
	}
	leg.Abandon()
}

var _ proxy.Switcher = (*tunnelled)(nil)

// upgrades over HTTP/2 do not leave the gateway.
func TestAnUpgradeIsNotOfferedToEndpointsOfHTTP2(t *testing.T) {
	o := options(served(t, upstream.H2C, tell))
	o.Protocol = upstream.H2C
	x := request("GET", "/?plain", handshake())
	x.Request.Upgrade = true
	if got := forward(t, x, open(t, o), new(client)); got != (answered{200, "GET /?plain"}) || x.Request.Upgrade {
		t.Errorf("%v", got)
	}
}
