package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// PoolOptions bound the connections to one endpoint.
type PoolOptions struct {
	Connections int           // at most, idle ones included
	Wait        time.Duration // for one to come free
}

// ErrPoolFull means that no connection came free within the wait.
var ErrPoolFull = errors.New("all connections to the endpoint are in use")

// ErrClientGone means that the client left while a connection was sought.
var ErrClientGone = errors.New("client left")

// ErrNoTime means that connecting was cut short: less was left of the request's time than the endpoint has to connect. It says nothing about
// the endpoint.
var ErrNoTime = errors.New("too little of the request's time was left to connect")

// cutShort is the error of a connection that did not come within given, when that was clearly less than connect.
func cutShort(err error, given, connect time.Duration) error {
	network, _ := errors.AsType[net.Error](err)
	late := errors.Is(err, context.DeadlineExceeded) || network != nil && network.Timeout()
	if late && given < connect-connect/10 {
		return fmt.Errorf("%w: %w", ErrNoTime, err)
	}
	return err
}

// Pool is the connections to one endpoint. The one that came back last goes out first. It is safe for concurrent use.
type Pool struct {
	address string
	tls     *tls.Config // nil: without
	guard   Guard       // nil: any address

	mu      sync.Mutex
	opts    PoolOptions
	idle    []*Conn
	open    int // idle, in use and being dialled
	waiters []chan *Conn
	closed  bool
	stats   PoolStats
}

// PoolStats counts what a pool did.
type PoolStats struct {
	Open, Idle       int
	Dials, Reuses    uint64
	Waits, Exhausted uint64
	Waited           time.Duration // in all
}

// Conn is a pooled connection with the reader of its answers' bodies.
type Conn struct {
	*http1.Conn
	Body   http1.BodyReader
	Reused bool // it has carried an exchange before

	once  bool // carries one exchange
	pool  *Pool
	since core.Instant // idle since
	doubt bool         // bytes that belong to no answer may lie in its socket, or come: behind a full read, or as a body where none is
	raw   syscall.RawConn
}

func newPool(address string, o PoolOptions) *Pool { return &Pool{address: address, opts: o} }

func (p *Pool) apply(o PoolOptions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opts = o
	for len(p.waiters) > 0 && p.open < o.Connections {
		p.open++
		p.handOver(nil)
	}
}

// Stats reads the counters.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Open, s.Idle = p.open, len(p.idle)
	return s
}

// Get takes an idle connection, dials one within connect, or waits for one to come free, and all that within left. A client that leaves ends
// both. A pool that was closed still dials, without a bound: whoever asks began while the endpoint was there.
func (p *Pool) Get(connect, left time.Duration, life *core.Lifeline) (*Conn, error) {
	return p.get(connect, left, life, nil)
}

// Open is Get for a connection of its own that begins with a preamble, in front of TLS. It carries one exchange. All connections of a
// pool are opened this way, or none.
func (p *Pool) Open(connect, left time.Duration, life *core.Lifeline, preamble []byte) (*Conn, error) {
	return p.get(connect, left, life, preamble)
}

func (p *Pool) get(connect, left time.Duration, life *core.Lifeline, preamble []byte) (*Conn, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		c := p.pop()
		if !c.doubt && core.Now().Sub(c.since) < trustFor || c.alive() {
			p.stats.Reuses++
			p.mu.Unlock()
			c.Reused = true
			return c, nil
		}
		p.drop(c)
	}
	if p.closed || p.open < p.opts.Connections {
		p.open++
		p.stats.Dials++
		p.mu.Unlock()
		return p.dial(connect, left, life, preamble)
	}
	return p.wait(connect, left, life, preamble)
}

// trustFor is how long an idle connection is taken to be alive without asking the kernel. A busy pool uses the connections on top again
// before that.
const trustFor = 10 * time.Millisecond

// gone lets a departed client end a wait.
type gone chan struct{}

func (g gone) Cut() { close(g) }

// wait is called with p.mu held and gives it back. A nil connection handed over is leave to dial.
func (p *Pool) wait(connect, left time.Duration, life *core.Lifeline, preamble []byte) (*Conn, error) {
	ch := make(chan *Conn, 1)
	p.waiters = append(p.waiters, ch)
	p.stats.Waits++
	limit, began := min(p.opts.Wait, left), core.Now()
	p.mu.Unlock()
	defer p.waited(began)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	leaves := make(gone)
	if !life.Hold(leaves) {
		close(leaves)
	}
	var c *Conn
	select {
	case c = <-ch:
	case <-leaves:
		if p.withdraw(ch, false) {
			return nil, ErrClientGone
		}
		c = <-ch
	case <-timer.C:
		if p.withdraw(ch, true) {
			life.Release()
			return nil, ErrPoolFull
		}
		c = <-ch
	}
	switch {
	case !life.Release():
		p.free(c)
		return nil, ErrClientGone
	case c == nil:
		return p.dial(connect, left-core.Now().Sub(began), life, preamble)
	}
	c.Reused = true
	return c, nil
}

func (p *Pool) waited(since core.Instant) {
	p.mu.Lock()
	p.stats.Waited += core.Now().Sub(since)
	p.mu.Unlock()
}

// withdraw takes a waiter off the list. It tells false when something was handed to it just now.
func (p *Pool) withdraw(ch chan *Conn, exhausted bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiters, ch)
	if i < 0 {
		return false
	}
	p.waiters = slices.Delete(p.waiters, i, i+1)
	if exhausted {
		p.stats.Exhausted++
	}
	return true
}

// canceller lets a departed client end a dial.
type canceller context.CancelFunc

func (c canceller) Cut() { c() }

func (p *Pool) dial(connect, left time.Duration, life *core.Lifeline, preamble []byte) (*Conn, error) {
	given := min(connect, left)
	ctx, cancel := context.WithTimeout(context.Background(), given)
	defer cancel()
	if !life.Hold(canceller(cancel)) {
		p.free(nil)
		return nil, ErrClientGone
	}
	c, err := p.connect(ctx, preamble)
	stays := life.Release()
	switch {
	case err == nil && stays:
		return c, nil
	case err == nil:
		c.Cut()
	}
	p.free(nil)
	if !stays {
		return nil, ErrClientGone
	}
	return nil, cutShort(err, given, connect)
}

// connect opens a connection and shakes hands where that is wanted.
func (p *Pool) connect(ctx context.Context, preamble []byte) (*Conn, error) {
	nc, err := dial(ctx, p.address, p.guard)
	if err != nil {
		return nil, err
	}
	c := &Conn{pool: p, once: preamble != nil}
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn()
	}
	if preamble != nil {
		if _, err := nc.Write(preamble); err != nil { // the first bytes of a connection always find room
			_ = nc.Close()
			return nil, err
		}
	}
	if p.tls != nil {
		secure := http1.SecureClient(nc, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, fmt.Errorf("no TLS handshake: %w", err)
		}
		nc = secure
	}
	c.Conn = http1.NewConn(nc)
	return c, nil
}

// Put brings a connection back that is fit for another exchange.
func (p *Pool) Put(c *Conn) {
	c.Release()
	c.doubt = c.Body.Source() == nil || c.Brimful()
	if c.once || c.Buffered() > 0 || c.doubt && !c.alive() || p.tls != nil && c.Withholds() { // more than was asked for: nobody knows what it answers
		p.Discard(c)
		return
	}
	c.since = core.Now()
	p.free(c)
}

// Discard closes a connection that must not be used again.
func (p *Pool) Discard(c *Conn) {
	c.Close()
	p.free(nil)
}

// free hands a connection, or with nil the room that one took, to whoever waits first.
func (p *Pool) free(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || p.open > p.opts.Connections:
		if c != nil {
			c.Close()
		}
		p.open--
	case len(p.waiters) > 0:
		p.handOver(c)
	case c == nil:
		p.open--
	default:
		c.Rest()
		p.idle = append(p.idle, c)
	}
}

// handOver is called with p.mu held while somebody waits.
func (p *Pool) handOver(c *Conn) {
	if c == nil {
		p.stats.Dials++
	} else {
		p.stats.Reuses++
	}
	p.waiters[0] <- c
	p.waiters = slices.Delete(p.waiters, 0, 1)
}

func (p *Pool) pop() *Conn {
	last := len(p.idle) - 1
	c := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return c
}

func (p *Pool) drop(c *Conn) {
	c.Close()
	p.open--
}

// Close ends the pool: idle connections close now, those in use when they come back. Whoever waits may dial.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		p.drop(c)
	}
	p.idle = nil
	for len(p.waiters) > 0 {
		p.open++
		p.handOver(nil)
	}
}

func (p *Pool) sweep(now core.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.idle[:0]
	for _, c := range p.idle {
		rested := now.Sub(c.since)
		if rested > idleLimit || rested > trustFor && !c.alive() {
			p.drop(c)
			continue
		}
		kept = append(kept, c)
	}
	clear(p.idle[len(kept):])
	p.idle = kept
}

// alive asks the kernel whether the peer has closed the connection or sent what nobody asked for.
func (c *Conn) alive() bool {
	if c.raw == nil {
		return true
	}
	quiet := false
	err := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN
	})
	return err == nil && quiet
}
