package http1

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// Secure is a TLS connection that a Conn, or HTTP/2, may lie on. A TLS connection is of no use any more once one of its writes has run
// into a deadline; so the limits of writes, which are tried again when a deadline has passed too early, hold for the socket below it.
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

// layered finds the limits of writes below TLS; nil where nc is no Secure.
func layered(nc net.Conn) *writing {
	if s, ok := nc.(interface{ socket() *socket }); ok {
		return &s.socket().writing
	}
	return nil
}

// layeredOn finds the connection below TLS; nil where nc is no Secure.
func layeredOn(nc net.Conn) net.Conn {
	if s, ok := nc.(interface{ socket() *socket }); ok {
		return s.socket().Conn
	}
	return nil
}

func (s *Secure) socket() *socket { return s.below }

// SetWriteDeadline ends all writing at t, for good.
func (s *Secure) SetWriteDeadline(t time.Time) error { return s.below.finish(t) }

// SetDeadline bounds reads, and ends all writing at t.
func (s *Secure) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// socket is what lies below TLS, with the limits of writing that a Conn above TLS sets.
type socket struct {
	net.Conn
	writing
}

// Write writes all of p, as long as the peer takes some of it in time.
func (s *socket) Write(p []byte) (int, error) { return s.write(s.Conn, p) }

// farewell is how long the end of a connection may take to be said. Nobody waits for it.
const farewell = 100 * time.Millisecond

// SetWriteDeadline is called by TLS when it closes the connection.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if soon := time.Now().Add(farewell); t.After(soon) {
		t = soon
	}
	return s.finish(t)
}

func (s *socket) finish(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return s.stop(s.Conn, time.Until(t))
}
