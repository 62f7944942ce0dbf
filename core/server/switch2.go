package server

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// socket is the client's end of a WebSocket that is a stream of HTTP/2 (RFC 8441). It is part of its stream and lives as long.
type socket struct {
	c    *stream
	idle http1.Pace

	// guarded by stream.mu
	half bool   // nothing more is written, in good order
	gone bool   // the client is
	left func() // to be called then
}

// webSocket is the protocol that clients may ask for.
const webSocket = "websocket"

// extend makes an extended CONNECT the request that it stands for: the GET of the same handshake over HTTP/1.1 (RFC 8441 section 5). The key of
// that, which HTTP/2 does without, is made here.
func (c *stream) extend() {
	q := &c.x.Request
	q.Method, q.Extended, q.Upgrade = http.MethodGet, true, true
	q.Header.Append(core.Bytes("Connection"), core.Bytes("Upgrade"), core.KindConnection)
	q.Header.Append(core.Bytes("Upgrade"), core.Bytes(webSocket), core.KindUpgrade)
	q.Header.Append(core.Bytes("Sec-WebSocket-Key"), core.Bytes(http1.NewWebSocketKey()), core.KindOther)
}

// serveSocket has a goroutine of its own come to the switch, as far as filters and dialling make its stack grow; this one, whose stack has not
// grown, carries the WebSocket. Half of what an idle one costs would be stack.
func (c *stream) serveSocket() {
	var rest func()
	whole := false
	switched := make(chan struct{})
	go func() {
		defer close(switched)
		defer func() {
			if p := recover(); p != nil {
				c.srv.log.Error("stream ended by a fault of the gateway", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		rest = c.srv.handler.Serve(c.x, c)
		whole = true
	}()
	<-switched
	switch {
	case !whole:
		panic(http.ErrAbortHandler)
	case rest != nil:
		rest()
	}
}

// spelled gives the names of a handshake's lines the capitals of RFC 6455, which the standard library does not know, and tells of lines that an
// extended CONNECT does not pass on.
func spelled(name string) (spelled string, passes bool) {
	const prefix = "Sec-Websocket-"
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return name, true
	}
	return "Sec-WebSocket-" + rest, rest != "Key"
}

// Switch implements proxy.Switcher. The stream ends with its exchange.
func (c *stream) Switch() (http1.End, error) {
	c.mu.Lock()
	c.socket = &socket{c: c}
	c.mu.Unlock()
	for _, f := range c.x.Response.Header.Fields() {
		if !f.Kind.Hop() && f.Kind != core.KindContentLength && !core.EqualFoldString(f.Name, "Sec-WebSocket-Accept") {
			c.lines.add(&f)
		}
	}
	h := c.w.Header()
	c.lines.fill(h)
	for _, name := range [...]string{"Content-Length", "Content-Type", "Date"} {
		if h[name] == nil {
			h[name] = nil // or the standard library would make one
		}
	}
	c.x.Response.Started = true
	c.w.WriteHeader(http.StatusOK)
	if err := c.flush(); err != nil {
		c.broken = true
		return nil, err
	}
	clear(h)
	c.lines = lines{}
	r := c.body.src
	r.Header, r.URL, r.Trailer = nil, nil, nil // what is in them has been taken
	c.srv.rested.Add(1)
	return c.socket, nil
}

// Read implements http1.Stream.
func (s *socket) Read(p []byte) (int, error) { return s.c.body.src.Body.Read(p) }

// pieceOfSocket is what a client has to take within the idle limit.
const pieceOfSocket = 16 << 10

// Write implements http1.Stream.
func (s *socket) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), pieceOfSocket)]
		if err = s.c.write(piece); err == nil {
			err = s.c.flush()
		}
		n, b = n+len(piece), b[len(piece):]
	}
	return n, err
}

// WriteIdle implements http1.Stream.
func (s *socket) WriteIdle(d time.Duration) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	s.idle = http1.Pace{Idle: d}
	if c.stall.begin(&s.idle); c.stall.timer != nil {
		c.stall.timer.Reset(d)
	}
}

// CloseWrite implements http1.Stream. The standard library ends a stream's half when its handler returns, and not before.
func (s *socket) CloseWrite() error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.half = true
	return nil
}

// Cut implements http1.Stream. Whether the stream is reset or ends is settled when its exchange has ended.
func (s *socket) Cut() {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.live || c.socket != s {
		return
	}
	past := time.Unix(1, 0)
	_ = c.control.SetReadDeadline(past)
	if !s.half {
		_ = c.control.SetWriteDeadline(past)
	}
}

// Watch implements http1.Stream.
func (s *socket) Watch(left func()) {
	s.c.mu.Lock()
	s.left = left
	gone := s.gone
	s.c.mu.Unlock()
	if gone {
		left()
	}
}

// cutOff tells whether the stream switched and did not come to a good end.
func (c *stream) cutOff() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket != nil && !c.socket.half
}
