package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// http2Leg serves connections that speak HTTP/2, by the standard library's server. It gets them from the accept loop, after a handshake that
// chose h2 or with a preface that has been read; so both look the same to it: a connection that begins with a preface.
type http2Leg struct {
	srv    *Server
	http   *http.Server
	conns  *handover
	ending atomic.Bool // its connections have been asked to end
	begun  sync.Once
	served chan struct{} // closed when http has ended
}

// Bounds of one HTTP/2 connection.
const (
	maxStreams   = 128
	streamWindow = 256 << 10 // bytes of a request's body that may wait to be read
	// connWindow is for all streams together, so that those that nobody reads, such as WebSockets whose upstream takes nothing, never stop the others.
	// net/http names a smaller bound and has none; a test sends as much.
	connWindow = maxStreams * streamWindow
)

func newHTTP2(s *Server, set Settings) *http2Leg {
	h := &http2Leg{srv: s, conns: newHandover(), served: make(chan struct{})}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h.http = &http.Server{
		Protocols:         protocols,
		Handler:           http.HandlerFunc(h.serve),
		ConnContext:       withConn,
		ConnState:         noteState,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: set.HeadTimeout, // for the preface
		IdleTimeout:       set.IdleTimeout,
		MaxHeaderBytes:    2 * set.Head.Head, // what lies between is answered here
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              16 << 10,
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReceiveBufferPerConnection: connWindow,
		},
	}
	return h
}

// serveHTTP2 hands a connection over. early is what was read of it already.
func (s *Server) serveHTTP2(nc net.Conn, by *listening, early []byte) {
	s.mu.Lock()
	h := s.http2
	if s.draining.Load() {
		h = nil
	}
	s.mu.Unlock()
	if h == nil {
		_ = nc.Close()
		return
	}
	h.begun.Do(func() {
		go func() {
			defer close(h.served)
			_ = h.http.Serve(h.conns)
		}()
	})
	s.connections2.Add(1)
	c := newConn2(nc, by, early, s)
	c.leg = h
	if !h.conns.give(c) {
		_ = c.Close()
	}
}

// renewHTTP2 makes other settings hold for new connections. Those that are open are asked to end when their streams have.
func (s *Server) renewHTTP2(set Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return
	}
	old := s.http2
	s.http2 = newHTTP2(s, set)
	s.leaving = append(s.leaving, old)
	go func() {
		_ = old.end(context.Background())
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, h := range s.leaving {
			if h == old {
				s.leaving = append(s.leaving[:i], s.leaving[i+1:]...)
				return
			}
		}
	}()
}

// drainHTTP2 asks all connections to end. The channel closes when they have and no request is being served any more; when ctx ends first
// they are cut.
func (s *Server) drainHTTP2(ctx context.Context) <-chan struct{} {
	s.mu.Lock()
	legs := append([]*http2Leg{s.http2}, s.leaving...)
	s.mu.Unlock()
	drained := make(chan struct{})
	waiting, enough := context.WithCancel(ctx)
	go func() {
		defer close(drained)
		var all sync.WaitGroup
		for _, h := range legs {
			all.Go(func() {
				if h.end(waiting) != nil && ctx.Err() != nil {
					s.cutting.Store(true)
					_ = h.http.Close()
				}
			})
		}
		for tick := time.NewTicker(time.Millisecond); s.inFlight2.Load()+s.connections2.Load() > 0; <-tick.C {
		}
		enough() // the standard library looks twice a second whether any are left
		all.Wait()
	}()
	return drained
}

func (h *http2Leg) end(ctx context.Context) error {
	h.ending.Store(true)
	_ = h.conns.Close() // whoever is about to hand a connection over hears it
	err := h.http.Shutdown(ctx)
	h.begun.Do(func() { close(h.served) })
	<-h.served
	return err
}

// connKey is under which a request's context holds its connection.
type connKey struct{}

func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// noteState keeps whether a connection has open streams, which the standard library knows.
func noteState(nc net.Conn, state http.ConnState) {
	if c, ok := nc.(*conn2); ok {
		c.idle.Store(state == http.StateIdle)
	}
}

// handover is a listener that gets its connections from another.
type handover struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// give tells false when nobody will take the connection any more.
func (h *handover) give(nc net.Conn) bool {
	select {
	case h.conns <- nc:
		return true
	case <-h.closed:
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return new(net.TCPAddr) }

// preface begins a connection that speaks HTTP/2 (RFC 9113 section 3.4); prefaceHead is what of it looks like a head of HTTP/1.
const prefaceHead = "PRI * HTTP/2.0\r\n"

// begins2 tells whether what came instead of a first request is the preface of HTTP/2, and takes what was read for its leg.
func (c *client) begins2(head []byte) bool {
	if string(head) != prefaceHead || c.by.Protocol == HTTP1 || c.tls != nil || c.conn.Written > 0 || c.x.Request.HeadSize == 0 {
		return false
	}
	c.early = append([]byte(prefaceHead+"\r\n"), c.conn.Take()...)
	return true
}

// strongEnough tells whether HTTP/2 may be spoken over what a handshake agreed on (RFC 9113 section 9.2).
func strongEnough(state tls.ConnectionState) bool {
	if state.Version >= tls.VersionTLS13 {
		return true
	}
	switch state.CipherSuite {
	case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return state.Version == tls.VersionTLS12
	}
	return false
}

var _ core.Client = (*stream)(nil)
