package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core/server"
)

// The limits of the listener: it serves a handful of operators and scrapers.
const (
	headTimeout  = 5 * time.Second
	readTimeout  = 10 * time.Second
	writeTimeout = 60 * time.Second // a reload may take a while
	idleTimeout  = 60 * time.Second
	maxHead      = 16 << 10
	maxBody      = 64 << 10
	closeTimeout = time.Second
)

// Server keeps the operator's door on a listener. A reload may move it: Prepare does what can fail, Commit what cannot.
// The methods are safe for concurrent use, but only one Change may be pending at a time.
type Server struct {
	log     *slog.Logger
	passed  *server.Passed
	handler atomic.Pointer[Handler]
	running sync.WaitGroup

	mu      sync.Mutex
	address string // as it was asked for
	now     *listener
	closed  bool
}

// listener is one socket with the server on it.
type listener struct {
	net.Listener
	http *http.Server
}

// NewServer makes a server that listens nowhere yet. Of the sockets that were passed, if any, it takes those with its addresses.
func NewServer(log *slog.Logger, passed *server.Passed) *Server {
	return &Server{log: log, passed: passed}
}

// Change is a move that has been prepared. Exactly one of Commit and Abort ends it.
type Change struct {
	server  *Server
	address string
	options Options
	next    *listener // nil: the address stays
}

// Prepare binds address, unless the server is there already. Nothing is served differently before Commit. Whether the
// options' Loopback holds is found out here, from the address that was bound.
func (s *Server) Prepare(address string, o Options) (*Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Change{server: s, address: address, options: o}
	bound := s.now
	if s.now == nil || s.address != address {
		ln, err := s.passed.Open(address, 0)
		if err != nil {
			return nil, fmt.Errorf("the admin listener cannot have %s: %w", address, err)
		}
		c.next = s.listener(ln)
		bound = c.next
	}
	c.options.Loopback = loopback(bound.Addr())
	return c, nil
}

func (s *Server) listener(ln net.Listener) *listener {
	current := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.Load().ServeHTTP(w, r) })
	return &listener{ln, &http.Server{
		Handler:           http.MaxBytesHandler(current, maxBody),
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
}

// Commit serves the new options, at the new address if it changed. The old listener ends once what it answers has ended.
// After Close it is Abort.
func (c *Change) Commit() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Abort()
		return
	}
	s.handler.Store(New(c.options))
	if c.next == nil {
		return
	}
	old := s.now
	s.address, s.now = c.address, c.next
	s.running.Go(func() {
		if err := c.next.http.Serve(c.next); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("admin listener broken", "address", c.address, "error", err)
		}
	})
	if old != nil {
		s.running.Go(old.end)
	}
}

// Abort gives back what was bound.
func (c *Change) Abort() {
	if c.next != nil {
		c.next.Close()
	}
}

// Addr is where the server listens, nil before the first Commit.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil
	}
	return s.now.Addr()
}

// Close lets answers that have begun end within a second, closes the listener and returns when nothing of the server runs.
func (s *Server) Close() {
	s.mu.Lock()
	last := s.now
	s.now, s.closed = nil, true
	s.mu.Unlock()
	if last != nil {
		last.end()
	}
	s.running.Wait()
}

func (l *listener) end() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if l.http.Shutdown(ctx) != nil {
		l.http.Close()
	}
}

// loopback tells whether only this machine reaches a listener's address.
func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
