package server

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// conn2 is a connection that speaks HTTP/2, as the standard library's server reads it: in pieces of a few bytes, which come out of a
// buffer here, and past a guard that ends it when the client only keeps it busy.
type conn2 struct {
	net.Conn
	srv          *Server
	leg          *http2Leg
	by           *listening
	secure       *secured // nil without TLS
	remote       netip.AddrPort
	local        netip.AddrPort
	closed       sync.Once
	served       atomic.Int64 // requests that came here
	idle         atomic.Bool  // no stream is open
	leaves       atomic.Bool  // it was asked to end, because its listener is gone
	clientWindow atomic.Int64 // bytes that the client lets be sent on a new stream
	out          sender
	unextended   bool // the first frame to come has yet to lose the setting that allows extended CONNECT

	in    []byte // of buf: read and not yet taken
	buf   []byte
	guard guard
	head  time.Duration // for a header block that has begun
	timed bool          // such a block is under way, and has its deadline
}

// readBuffer2 is the size of a read. Frames that carry much are taken by the server in one piece beside it.
const readBuffer2 = 4 << 10

func newConn2(nc net.Conn, by *listening, early []byte, s *Server) *conn2 {
	secure, _ := nc.(*secured)
	set := s.settings.Load()
	c := &conn2{Conn: nc, srv: s, by: by, secure: secure, head: set.HeadTimeout}
	c.clientWindow.Store(firstWindow)
	c.unextended = !set.WebSockets
	c.remote, c.local = by.ends(nc)
	c.buf = make([]byte, max(readBuffer2, len(early)))
	c.in = c.buf[:copy(c.buf, early)]
	c.guard.begin(core.Now())
	c.out.begin(nc, &set.pace, c.part)
	return c
}

// firstWindow is what may be sent on a new connection, and on its streams unless the client says otherwise (RFC 9113 section 6.9.2).
const firstWindow = 1<<16 - 1

// window is what may be sent on a new stream before the client has to open its window.
func (c *conn2) window() int { return int(min(c.clientWindow.Load(), firstWindow)) }

// Read implements net.Conn.
func (c *conn2) Read(p []byte) (int, error) {
	if c.guard.atSettings() {
		if err := c.gather(c.guard.left); err != nil {
			return 0, err
		}
		settings := c.in[:min(c.guard.left, len(c.in))]
		settleSettings(settings)
		if n, ok := initialWindow(settings); ok {
			c.clientWindow.Store(int64(n))
		}
	}
	if len(c.in) == 0 {
		c.limitHead()
		if len(p) >= len(c.buf) {
			n, err := c.Conn.Read(p)
			return c.pass(p[:n], err)
		}
		n, err := c.Conn.Read(c.buf)
		if n == 0 {
			return 0, err
		}
		c.in = c.buf[:n]
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return c.pass(p[:n], nil)
}

// limitHead gives a header block that is only partly there its time.
func (c *conn2) limitHead() {
	switch inside := c.guard.inBlock(); {
	case inside && !c.timed:
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.head))
		c.timed = true
	case !inside && c.timed:
		_ = c.Conn.SetReadDeadline(time.Time{})
		c.timed = false
	}
}

// gather reads until n bytes are there, as long as they fit.
func (c *conn2) gather(n int) error {
	if n > len(c.buf) || n <= len(c.in) {
		return nil
	}
	have := copy(c.buf, c.in)
	for have < n {
		m, err := c.Conn.Read(c.buf[have:])
		if have += m; m == 0 && err != nil {
			return err
		}
	}
	c.in = c.buf[:have]
	return nil
}

func (c *conn2) pass(b []byte, err error) (int, error) {
	if bad := c.guard.see(b); bad != nil {
		c.srv.log.Debug("HTTP/2 connection ended", "client", c.remote.String(), "error", bad)
		return 0, io.EOF
	}
	return len(b), err
}

// Write implements net.Conn. While there are streams that never came here as requests, some may be malformed ones.
func (c *conn2) Write(p []byte) (int, error) {
	if c.idle.Load() && len(p) <= 128 && bytes.Contains(p, goAwayHead) {
		defer c.out.closeHalf()
	}
	out := p
	switch {
	case c.unextended:
		c.unextended = false
		out = withoutConnect(p)
	case c.guard.opened.Load() != c.served.Load():
		out = resetMalformed(p)
	}
	c.guard.replies.see(out)
	if _, err := c.out.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// goAwayHead is the head of the GOAWAY frame with which the standard library asks an idle connection to end. It leaves the client a second to do
// so; one that sees the end of what there is to read behind it needs no longer than its answer.
var goAwayHead = []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0}

// Close implements net.Conn. What waits to be written is written first.
func (c *conn2) Close() error {
	c.closed.Do(c.out.close)
	return nil
}

// part ends the connection. A client that was asked to end it may be sending still: closed at once, the connection would throw away the GOAWAY
// frame that tells which of its requests nobody has seen. So what it sends is read for a while.
func (c *conn2) part() {
	if !c.leg.ending.Load() && !c.leaves.Load() && !c.out.half || c.srv.cutting.Load() || c.out.err != nil {
		c.end()
		return
	}
	c.out.endHalf()
	go func() {
		defer c.end()
		defer time.AfterFunc(lingerFor, c.out.conn.Cut).Stop()
		_, _ = io.Copy(io.Discard, c.Conn)
	}()
}

func (c *conn2) end() {
	c.out.conn.Cut()
	c.srv.connections2.Add(-1)
}

// SetWriteDeadline implements net.Conn; deadlines of writes are the sender's.
func (c *conn2) SetWriteDeadline(time.Time) error { return nil }
