package upstream

import (
	"context"
	"errors"
	"net"
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

var errPoolClosed = errors.New("endpoint was removed")

// Pool is the connections to one endpoint. The one that came back last goes out first. It is safe for concurrent use.
type Pool struct {
	address string

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
}

// Conn is a pooled connection with the reader of its answers' bodies.
type Conn struct {
	*http1.Conn
	Body   http1.BodyReader
	Reused bool // it has carried an exchange before

	pool  *Pool
	since core.Instant // idle since
	raw   syscall.RawConn
}

func newPool(address string, o PoolOptions) *Pool { return &Pool{address: address, opts: o} }

func (p *Pool) apply(o PoolOptions) {
	p.mu.Lock()
	p.opts = o
	p.mu.Unlock()
}

// Stats reads the counters.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Open, s.Idle = p.open, len(p.idle)
	return s
}

// Get takes an idle connection, dials one within connect, or waits for one to come free. A client that leaves ends the dialling.
func (p *Pool) Get(connect time.Duration, life *core.Lifeline) (*Conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errPoolClosed
	}
	for len(p.idle) > 0 {
		c := p.pop()
		if core.Now().Sub(c.since) < trustFor || c.alive() {
			p.stats.Reuses++
			p.mu.Unlock()
			c.Reused = true
			return c, nil
		}
		p.drop(c)
	}
	if p.open < p.opts.Connections {
		p.open++
		p.stats.Dials++
		p.mu.Unlock()
		return p.dial(connect, life)
	}
	return p.wait(connect, life)
}

// trustFor is how long an idle connection is taken to be alive without asking the kernel.
const trustFor = 250 * time.Millisecond

// wait is called with p.mu held and gives it back. A nil connection handed over is leave to dial.
func (p *Pool) wait(connect time.Duration, life *core.Lifeline) (*Conn, error) {
	ch := make(chan *Conn, 1)
	p.waiters = append(p.waiters, ch)
	p.stats.Waits++
	limit := p.opts.Wait
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var c *Conn
	select {
	case c = <-ch:
	case <-timer.C:
		if p.giveUp(ch) {
			return nil, ErrPoolFull
		}
		c = <-ch
	}
	if c != nil {
		c.Reused = true
		return c, nil
	}
	return p.dial(connect, life)
}

// giveUp takes a waiter off the list. It tells false when something was handed to it just now.
func (p *Pool) giveUp(ch chan *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiters {
		if w == ch {
			p.waiters = append(p.waiters[:i], p.waiters[i+1:]...)
			p.stats.Exhausted++
			return true
		}
	}
	return false
}

// canceller lets a departed client end a dial.
type canceller context.CancelFunc

func (c canceller) Cut() { c() }

func (p *Pool) dial(connect time.Duration, life *core.Lifeline) (*Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connect)
	defer cancel()
	if !life.Hold(canceller(cancel)) {
		p.free(nil)
		return nil, ErrClientGone
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", p.address)
	stays := life.Release()
	switch {
	case err == nil && stays:
		c := &Conn{Conn: http1.NewConn(nc), pool: p}
		if sc, ok := nc.(syscall.Conn); ok {
			c.raw, _ = sc.SyscallConn()
		}
		return c, nil
	case err == nil:
		_ = nc.Close()
	}
	p.free(nil)
	if !stays {
		return nil, ErrClientGone
	}
	return nil, err
}

// Put brings a connection back that is fit for another exchange.
func (p *Pool) Put(c *Conn) {
	c.Release()
	if c.Buffered() > 0 { // more than was asked for: nobody knows what it answers
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

// free hands a connection, or the room that one took, to whoever waits first.
func (p *Pool) free(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || c != nil && p.open > p.opts.Connections {
		if c != nil {
			c.Close()
		}
		p.open--
		return
	}
	if len(p.waiters) > 0 {
		ch := p.waiters[0]
		p.waiters = append(p.waiters[:0], p.waiters[1:]...)
		ch <- c
		return
	}
	if c == nil {
		p.open--
		return
	}
	c.Rest()
	p.idle = append(p.idle, c)
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

// Close ends the pool: idle connections close now, those in use when they come back. Whoever waits may still
// dial: its request began while the endpoint was there.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		p.drop(c)
	}
	p.idle = nil
	for _, ch := range p.waiters {
		p.open++
		ch <- nil
	}
	p.waiters = nil
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
