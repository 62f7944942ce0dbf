package http1

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// Secure is a TLS connection that a Conn, or HTTP/2, may lie on. A TLS connection is of no use any more once one of its writes has run
// into a deadline; so deadlines of writes hold for the socket below it, where a write goes on while the peer takes anything at all.
type Secure struct {
	*tls.Conn
	below *socket
}

// SecureServer is the server's side of TLS on nc; the handshake is the caller's.
func SecureServer(nc net.Conn, c *tls.Config) *Secure {
	below := &socket{Conn: nc}
	return &Secure{tls.Server(below, c), below}
}

// SecureClient is the client's side of TLS on nc; the handshake is the caller's.
func SecureClient(nc net.Conn, c *tls.Config) *Secure {
	below := &socket{Conn: nc}
	return &Secure{tls.Client(below, c), below}
}

// Below is the connection that TLS lies on.
func (s *Secure) Below() net.Conn { return s.below.Conn }

// SetWriteDeadline gives writes until t, and as long again for each that begins later or has moved on.
func (s *Secure) SetWriteDeadline(t time.Time) error { return s.below.setLimit(t) }

// SetDeadline bounds reads and writes.
func (s *Secure) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// socket is what lies below TLS.
type socket struct {
	net.Conn
	limit atomic.Int64 // core.Instant until which writes may stand still, 0 for ever
	span  atomic.Int64 // what a write gets that begins later, or has moved on
}

func (s *socket) setLimit(t time.Time) error {
	if t.IsZero() {
		s.limit.Store(0)
		return s.Conn.SetWriteDeadline(t)
	}
	d := time.Until(t)
	s.span.Store(int64(d))
	s.limit.Store(int64(core.Now().Add(d)))
	return s.Conn.SetWriteDeadline(t)
}

// farewell is how long the end of a connection may take to be said. Nobody waits for it.
const farewell = 100 * time.Millisecond

// SetWriteDeadline is called by TLS when it closes the connection.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if soon := time.Now().Add(farewell); t.After(soon) {
		t = soon
	}
	return s.setLimit(t)
}

// Write writes all of p, as long as the peer takes some of it in time.
func (s *socket) Write(p []byte) (n int, err error) {
	moved := core.Now()
	for {
		var m int
		if m, err = s.Conn.Write(p[n:]); m > 0 {
			moved = core.Now()
		}
		if n += m; err == nil || n == len(p) || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		limit := core.Instant(s.limit.Load())
		if limit == 0 {
			_ = s.Conn.SetWriteDeadline(time.Time{})
			continue
		}
		limit = max(limit, moved.Add(time.Duration(s.span.Load())))
		if core.Now() >= limit {
			return n, err
		}
		_ = s.Conn.SetWriteDeadline(limit.Wall())
	}
}
