// Package server is the leg to the client: it accepts connections, reads requests off them and writes answers. It answers one question:
// who is there, and is he still? What happens to a request it leaves to its [Handler].
//
// A [Server] serves any number of listeners. Each connection has one goroutine and one [core.Exchange] at a time. Memory is held while
// a connection works: one that stays idle gives its buffers back. A sweeper notices clients that leave while an upstream works for them.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// Handler is what a server feeds. Both calls have answered through c when they return.
type Handler interface {
	// Serve takes a request whose head was read. What is left to do of one that has switched protocols comes back, as it may last for
	// hours: it is called next, from where the stack is small, and maybe by another goroutine.
	Serve(x *core.Exchange, c core.Client) (rest func())
	// Refuse takes one that could not be read as a request; x holds what could be.
	Refuse(x *core.Exchange, c core.Client, err *core.Error)
}

// Settings are the limits of the client's leg. They may change while the server runs; a request keeps those it began with.
type Settings struct {
	Head        http1.HeadLimits
	HeadTimeout time.Duration // from a request's first byte to the end of its head
	IdleTimeout time.Duration // between two requests
	BodyIdle    time.Duration // between two reads of a body, and for each write of an answer
	MinRate     int64         // bytes a second of a body and of the reading of an answer, see http1.Pace; 0: none is asked
	RateGrace   time.Duration // what a client may be behind with those
	WebSockets  bool          // HTTP/2 clients may open them (RFC 8441)
}

// limits are settings, and the pace that they come to.
type limits struct {
	Settings
	pace http1.Pace
}

func (set *Settings) limits() *limits {
	return &limits{*set, http1.Pace{Idle: set.BodyIdle, Rate: set.MinRate, Grace: set.RateGrace}}
}

// Server serves clients. Make one with New.
type Server struct {
	handler      Handler
	log          *slog.Logger
	settings     atomic.Pointer[limits]
	draining     atomic.Bool
	cutting      atomic.Bool // the time to drain is over
	inFlight     atomic.Int64
	rested       atomic.Int64
	connections2 atomic.Int64 // of HTTP/2
	inFlight2    atomic.Int64 // requests over it
	watcher      *watcher

	welcoming       context.Context // of handshakes
	dismiss         context.CancelFunc
	handshakes      atomic.Int64
	handshakeFaults atomic.Int64

	mu        sync.Mutex
	clients   []*client
	http2     *http2Leg   // for new connections
	leaving   []*http2Leg // those before it that still have connections
	listeners map[net.Listener]struct{}
	running   sync.WaitGroup
}

// New makes a server that feeds h.
func New(h Handler, set Settings, log *slog.Logger) *Server {
	s := &Server{handler: h, log: log, listeners: map[net.Listener]struct{}{}}
	s.settings.Store(set.limits())
	s.welcoming, s.dismiss = context.WithCancel(context.Background())
	s.http2 = newHTTP2(s, set)
	s.watcher = newWatcher(s)
	return s
}

// Apply changes the limits for requests that begin from now on.
func (s *Server) Apply(set Settings) {
	if old := s.settings.Swap(set.limits()); old.Settings != set {
		s.renewHTTP2(set)
	}
}

// InFlight is the number of requests being worked on.
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

// Rested counts how often an idle connection has given its buffers back.
func (s *Server) Rested() int64 { return s.rested.Load() }

// Connections is the number of open client connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients) + int(s.connections2.Load())
}

// Serve accepts connections from l until Shutdown or until l is closed, which is no error.
func (s *Server) Serve(l *Listener) error {
	if !s.enlist(l) {
		return l.Close()
	}
	defer s.delist(l)
	for wait := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
			s.accept(nc, l.set.Load())
		case errors.Is(err, net.ErrClosed):
			return nil
		default: // out of descriptors, most likely: what is open goes on
			if wait = min(max(2*wait, 5*time.Millisecond), time.Second); wait > 100*time.Millisecond {
				s.log.Error("accept failed", "listener", l.Addr().String(), "error", err)
			}
			time.Sleep(wait)
		}
	}
}

// enlist makes Shutdown close l and wait for its Serve. It tells false when Shutdown has begun.
func (s *Server) enlist(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) delist(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	s.running.Done()
}

// grace is how long an idle connection may still bring a request after the server began to drain.
const grace = 500 * time.Millisecond

// Shutdown stops accepting, lets requests in flight end, and closes what is idle. When ctx ends first, everything is cut and its error
// returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining.Store(true)
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	drained := s.drainHTTP2(ctx)
	go func() {
		s.running.Wait()
		<-drained
		close(ended)
	}()
	defer s.watcher.close()
	defer s.dismiss()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := core.Now(); ; {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			s.cutting.Store(true)
			s.dismiss()
			s.each((*client).cut)
			<-ended
			return ctx.Err()
		case <-tick.C:
			if core.Now().Sub(began) > grace {
				s.dismiss()
				s.each((*client).cutIdle)
			}
		}
	}
}

func (s *Server) forget(c *client) {
	s.mu.Lock()
	last := len(s.clients) - 1
	s.clients[c.slot] = s.clients[last]
	s.clients[c.slot].slot = c.slot
	s.clients[last] = nil
	s.clients = s.clients[:last]
	s.mu.Unlock()
	s.watcher.forget(c)
	s.running.Done()
}

func (s *Server) each(f func(*client)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		f(c)
	}
}

var exchanges = sync.Pool{New: func() any { return new(core.Exchange) }}
