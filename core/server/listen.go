package server

import (
	"context"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/moongate/moongate/core/proxyproto"
)

// Listener is an address that clients connect to. Connections that it accepted are served as it was set when they came; once it is closed each ends
// behind its next answer.
type Listener struct {
	net.Listener
	set    atomic.Pointer[listening]
	closed atomic.Bool
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}

// listening is how a listener was set when a connection came. It is immutable.
type listening struct {
	Listening
	at   *Listener
	tls  *TLS              // nil: without
	said proxyproto.Header // by a proxy, of one connection
}

// Protocol says which of the two versions of HTTP a listener speaks.
type Protocol uint8

// Either is HTTP/1.1, or HTTP/2 with clients that begin with it.
const (
	Either Protocol = iota
	HTTP1
	HTTP2
)

// Listening is what holds for a listener's connections besides TLS.
type Listening struct {
	Name     string // carried by requests, for routes that ask for it; may be empty
	Protocol Protocol
	Proxies  *Proxies // whose connections begin with a PROXY header; nil: nobody's
}

// Listen opens an address, host:port or unix:/path, for connections without TLS. mode is what the file of a Unix socket is given. Closing
// removes that file.
func Listen(address string, mode fs.FileMode) (*Listener, error) {
	return (*Passed)(nil).Listen(address, mode)
}

// Network is what package net calls the network of an address with host and port: an IPv4 address means IPv4 alone, also 0.0.0.0, which would
// otherwise be every address of both kinds, as no host at all and [::] are.
func Network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err == nil && bad == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// Configure says what holds for connections from now on; t is nil where they have no TLS. It may be called at any time.
func (l *Listener) Configure(o Listening, t *TLS) {
	l.set.Store(&listening{Listening: o, at: l, tls: t})
}

// closes tells whether the connection that came so shall end behind its next answer.
func (l *listening) closes() bool { return l.at.closed.Load() }

// start serves a new connection in a goroutine of its own.
func (s *Server) start(nc net.Conn, by *listening) {
	s.running.Add(1)
	if by.tls != nil {
		go s.welcome(nc, by)
		return
	}
	if by.Protocol == HTTP2 {
		go func() {
			s.serveHTTP2(nc, by, nil)
			s.running.Done()
		}()
		return
	}
	go s.enter(newClient(s, nc, by)).run()
}

// enter puts a client on the list.
func (s *Server) enter(c *client) *client {
	s.mu.Lock()
	c.slot = len(s.clients)
	s.clients = append(s.clients, c)
	s.mu.Unlock()
	return c
}

// welcome shakes hands with a client and serves it by the protocol that it chose.
func (s *Server) welcome(nc net.Conn, by *listening) {
	ctx, cancel := context.WithTimeout(s.welcoming, s.settings.Load().HeadTimeout)
	secure, err := by.tls.shake(ctx, nc, by.Protocol)
	cancel()
	if err != nil {
		s.handshakeFaults.Add(1)
		s.log.Debug("no TLS handshake", "client", nc.RemoteAddr().String(), "error", err)
		_ = nc.Close()
		s.running.Done()
		return
	}
	s.handshakes.Add(1)
	if state := secure.ConnectionState(); state.NegotiatedProtocol == "h2" {
		if strongEnough(state) {
			s.serveHTTP2(secure, by, nil)
		} else {
			_ = nc.Close()
		}
		s.running.Done()
		return
	}
	if by.Protocol == HTTP2 {
		_ = nc.Close()
		s.running.Done()
		return
	}
	c := newClient(s, secure, by)
	c.tls, c.scheme = secure, "https"
	s.enter(c).run()
}

// Handshakes counts those that succeeded and those that failed.
func (s *Server) Handshakes() (succeeded, failed int64) {
	return s.handshakes.Load(), s.handshakeFaults.Load()
}

// descriptor finds the socket below whatever a connection is wrapped in; nil when there is none.
func descriptor(nc net.Conn) syscall.RawConn {
	raw, ok := plain(nc).(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return nil
	}
	return rc
}

// plain is the connection below TLS.
func plain(nc net.Conn) net.Conn {
	if s, ok := nc.(*secured); ok {
		return s.Below()
	}
	return nc
}

// Chmod changes the permissions of a Unix socket's file; other listeners have none.
func (l *Listener) Chmod(mode fs.FileMode) error {
	if u, ok := l.Listener.(*unixListener); ok {
		return os.Chmod(u.path, mode)
	}
	return nil
}

// remoteOf is the peer's address, IPv4 as such; the zero value over a Unix socket.
func remoteOf(nc net.Conn) netip.AddrPort { return addrOf(nc.RemoteAddr()) }

func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	addr := tcp.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}
