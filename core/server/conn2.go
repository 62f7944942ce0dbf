package server

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// conn2 is a connection that speaks HTTP/2, as the standard library's server reads it: in pieces of a few bytes, which come out of a
// buffer here, and past a guard that ends it when the client only keeps it busy.
type conn2 struct {
	net.Conn
	srv    *Server
	by     *listening
	secure *secured // nil without TLS
	remote netip.AddrPort
	closed sync.Once

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
	c := &conn2{Conn: nc, srv: s, by: by, secure: secure, remote: remoteOf(nc), head: s.settings.Load().HeadTimeout}
	c.buf = make([]byte, max(readBuffer2, len(early)))
	c.in = c.buf[:copy(c.buf, early)]
	c.guard.begin(core.Now())
	return c
}

// Read implements net.Conn.
func (c *conn2) Read(p []byte) (int, error) {
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

func (c *conn2) pass(b []byte, err error) (int, error) {
	if bad := c.guard.see(b); bad != nil {
		c.srv.log.Debug("HTTP/2 connection ended", "client", c.remote.String(), "error", bad)
		return 0, io.EOF
	}
	return len(b), err
}

// Close implements net.Conn.
func (c *conn2) Close() error {
	c.closed.Do(func() { c.srv.connections2.Add(-1) })
	return c.Conn.Close()
}
