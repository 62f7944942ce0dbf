package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// The protocols that endpoints may speak.
const (
	H1  = "h1"  // HTTP/1.1
	H2  = "h2"  // HTTP/2 over TLS
	H2C = "h2c" // HTTP/2 without TLS, known beforehand
)

// AnswerHead bounds the head of an endpoint's answer over any protocol, in bytes.
const AnswerHead = 256 << 10

// Bounds of the connections that speak HTTP/2.
const (
	answerWindow = 256 << 10 // bytes of an answer's body that may wait to be read
	pingAfter    = 15 * time.Second
)

// Streams is the connections over which an endpoint speaks HTTP/2. Requests share them; another is opened, one at a time, while all have as
// many streams as the endpoint allows. It is safe for concurrent use.
type Streams struct {
	address   string
	tls       *tls.Config     // nil: without
	transport *http.Transport // which speaks HTTP/2 over what open gives it, and keeps nothing

	waiting atomic.Int64 // requests that wait, for whoever sees a connection change
	trims   atomic.Bool  // connections close when they have no requests any more

	mu      sync.Mutex
	opts    PoolOptions
	conns   []*Shared
	dialing context.CancelFunc // of the dial under way, nil: none is
	fresh   *wire              // that the dial under way has opened; its own
	waiters []chan offer
	closed  bool
	stats   PoolStats
}

// Shared is a connection with room for a request: its RoundTrip, or else its Release, is called once.
type Shared struct {
	*http.ClientConn
	Reused bool // it has carried a request before this one

	wire *wire
	used bool
}

// Lost tells whether the endpoint, or what lies between, has ended the connection.
func (c *Shared) Lost() bool { return c.wire != nil && c.wire.lost.Load() }

// offer is what a request that waits is given.
type offer struct {
	c   *Shared
	err error
}

// newStreams prepares the connections to one endpoint; c is nil without TLS.
func newStreams(address string, c *tls.Config, o PoolOptions) *Streams {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true) // TLS is below, and nobody else's matter
	s := &Streams{address: address, opts: o}
	if c != nil {
		s.tls = c.Clone()
		s.tls.NextProtos = []string{"h2"}
	}
	s.transport = &http.Transport{
		Protocols:              p,
		DisableCompression:     true,
		IdleConnTimeout:        idleLimit,
		MaxResponseHeaderBytes: 2 * AnswerHead, // what lies between ends its own stream and no other
		DialContext:            s.open,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: answerWindow, SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}
	return s
}

var (
	errNotHTTP2  = errors.New("the endpoint does not speak HTTP/2")
	errNoStreams = errors.New("the endpoint allows no streams")
)

// open connects to the endpoint and shakes hands where that is wanted.
func (s *Streams) open(ctx context.Context, _, _ string) (net.Conn, error) {
	nc, err := dial(ctx, s.address, nil)
	if err != nil {
		return nil, err
	}
	if s.tls != nil {
		secure := tls.Client(nc, s.tls)
		if err = secure.HandshakeContext(ctx); err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
			err = errNotHTTP2
		}
		if err != nil {
			_ = nc.Close()
			return nil, fmt.Errorf("no TLS handshake: %w", err)
		}
		nc = secure
	}
	s.fresh = &wire{Conn: nc, settled: make(chan struct{})}
	return s.fresh, nil
}

// maxDial bounds a dial; a request's own limit is shorter, most likely.
const maxDial = 10 * time.Second

// Streams is the connections to an endpoint of this upstream over HTTP/2; nil when the upstream speaks HTTP/1.1.
func (u *Upstream) Streams(e *core.Endpoint) *Streams { return u.live[e.Index].streams }

// MaySwitch tells whether connections to the upstream's endpoints can switch protocols: those of HTTP/1.1 can.
func (u *Upstream) MaySwitch() bool { return u.opts.Protocol != H2 && u.opts.Protocol != H2C }

func (s *Streams) apply(o PoolOptions) {
	s.mu.Lock()
	s.opts = o
	s.trims.Store(s.closed || len(s.conns) > o.Connections)
	s.mu.Unlock()
	s.changed()
}

// Stats reads the counters. An idle connection is one without requests; each request counts as a reuse, since none has a connection of its own.
func (s *Streams) Stats() PoolStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	if st.Open = len(s.conns); s.dialing != nil {
		st.Open++
	}
	for _, c := range s.conns {
		if c.InFlight() == 0 {
			st.Idle++
		}
	}
	return st
}

// Get gives a connection with room for one request: one that is open, or one that is opened within connect. When all that may be open are full,
// it waits for room, as long as the pool says, and ends with ErrPoolFull. Neither takes longer than left. A client that leaves ends both.
func (s *Streams) Get(connect, left time.Duration, life *core.Lifeline) (Shared, error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	s.mu.Lock()
	if c := s.reserve(); c != nil {
		s.stats.Reuses++
		s.mu.Unlock()
		return offer{c: c}.take()
	}
	ch := make(chan offer, 1)
	s.waiters = append(s.waiters, ch)
	limit := min(connect, left)
	if s.grow(); s.dialing == nil {
		limit = min(s.opts.Wait, left)
		s.stats.Waits++
		defer s.waited(core.Now())
	}
	s.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	leaves := make(gone)
	if !life.Hold(leaves) {
		close(leaves)
	}
	var got offer
	select {
	case got = <-ch:
	case <-leaves:
		if s.withdraw(ch) {
			return Shared{}, ErrClientGone
		}
		got = <-ch
	case <-timer.C:
		if s.withdraw(ch) {
			life.Release()
			return Shared{}, cutShort(s.late(), limit, connect)
		}
		got = <-ch
	}
	if !life.Release() {
		if got.c != nil {
			got.c.Release()
		}
		return Shared{}, ErrClientGone
	}
	return got.take()
}

func (o offer) take() (Shared, error) {
	if o.err != nil {
		return Shared{}, o.err
	}
	return *o.c, nil
}

func (s *Streams) waited(since core.Instant) {
	s.mu.Lock()
	s.stats.Waited += core.Now().Sub(since)
	s.mu.Unlock()
}

// late is the error of a request that got nothing in time.
func (s *Streams) late() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialing != nil || len(s.conns) == 0 {
		return fmt.Errorf("no connection: %w", context.DeadlineExceeded)
	}
	s.stats.Exhausted++
	return ErrPoolFull
}

// withdraw takes a request off the list. It tells false when something was given to it just now. A dial that nobody waits for is ended.
func (s *Streams) withdraw(ch chan offer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiters, ch)
	if i < 0 {
		return false
	}
	if s.waiters = slices.Delete(s.waiters, i, i+1); len(s.waiters) == 0 && s.dialing != nil {
		s.dialing()
	}
	return true
}

// reserve finds a connection with room. It is called with s.mu held.
func (s *Streams) reserve() *Shared {
	for _, c := range s.conns {
		if !c.wire.leaving.Load() && c.Reserve() == nil {
			given := *c
			given.Reused, c.used = c.used, true
			return &given
		}
	}
	return nil
}

// grow opens another connection when one may be opened and none is being so. It is called with s.mu held.
func (s *Streams) grow() {
	s.forget()
	if len(s.waiters) == 0 || s.dialing != nil || len(s.conns) >= s.opts.Connections && !s.closed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxDial)
	s.dialing = cancel
	go s.dial(ctx)
}

// forget lets go of connections that take no request any more: ended ones, those that the endpoint lets come to their end, and those that it
// allows no streams.
func (s *Streams) forget() {
	s.conns = slices.DeleteFunc(s.conns, func(c *Shared) bool {
		switch {
		case c.Err() != nil || c.wire.leaving.Load():
			return true
		case c.InFlight() == 0 && c.Available() == 0:
			go func() { _ = c.Close() }()
			return true
		}
		return false
	})
}

func (s *Streams) dial(ctx context.Context) {
	cc, err := s.transport.NewClientConn(ctx, "http", "endpoint:1") // open knows the address
	if err == nil {
		err = s.fresh.await(ctx)
	}
	if err == nil && cc.Err() == nil && cc.Available() == 0 {
		err = errNoStreams
	}
	s.mu.Lock()
	unwanted := ctx.Err() == context.Canceled // who waited has left; it says nothing to those that have come since
	s.dialing()
	s.dialing = nil
	switch {
	case err == nil:
		s.conns = append(s.conns, &Shared{ClientConn: cc, wire: s.fresh})
	case !unwanted:
		s.refuse(err)
	}
	s.mu.Unlock()
	if err == nil {
		cc.SetStateHook(s.hook)
	} else if cc != nil {
		_ = cc.Close()
	}
	s.changed()
}

// refuse gives an error to all that wait; while there are connections that may have room soon, to the first alone. It is called with s.mu held.
func (s *Streams) refuse(err error) {
	n := len(s.waiters)
	if len(s.conns) > 0 {
		n = min(n, 1)
	}
	for _, ch := range s.waiters[:n] {
		ch <- offer{err: err}
	}
	s.waiters = slices.Delete(s.waiters, 0, n)
}

// hook is called by a connection that has more room, fewer requests or an end. It may be called with s.mu held, by whoever asks the connection.
func (s *Streams) hook(cc *http.ClientConn) {
	if s.waiting.Load() > 0 || cc.Err() != nil || s.trims.Load() {
		go s.changed()
	}
}

// changed gives what there is to those that wait, and closes what nobody needs any more.
func (s *Streams) changed() {
	s.mu.Lock()
	s.forget()
	for len(s.waiters) > 0 {
		c := s.reserve()
		if c == nil {
			break
		}
		s.stats.Reuses++
		s.waiters[0] <- offer{c: c}
		s.waiters = slices.Delete(s.waiters, 0, 1)
	}
	s.grow()
	var over []*Shared
	for i, c := range s.conns {
		if (s.closed || i >= s.opts.Connections) && c.InFlight() == 0 {
			over = append(over, c)
		}
	}
	s.mu.Unlock()
	for _, c := range over {
		_ = c.Close()
	}
}

// Close ends the pool: connections without requests close now, the others when theirs have ended. Whoever asks all the same began while the
// endpoint was there.
func (s *Streams) Close() {
	s.mu.Lock()
	s.closed = true
	s.trims.Store(true)
	s.mu.Unlock()
	s.changed()
}
