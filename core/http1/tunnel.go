package http1

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/moongate/moongate/core"
)

// Why a tunnel ended that neither of its ends wanted to end.
var (
	ErrTunnelIdle    = errors.New("idle for too long")
	ErrTunnelDrained = errors.New("closed by the gateway")
)

// End is one side of a tunnel: a *Conn, or a Stream where a client shares its connection with others.
type End interface {
	// Write writes all of p.
	Write(p []byte) (int, error)
	// WriteIdle gives each of the writes that follow d to move on; one that does not ends with ErrTimeout.
	WriteIdle(d time.Duration)
	// Cut ends all pending I/O at once and for good. Safe for concurrent use.
	Cut()
}

// Stream is a client's end that is one of several of a connection, as in HTTP/2. One goroutine may read while another writes.
type Stream interface {
	End
	// Read waits for bytes, also where p has no room for any, and gives io.EOF when the client has ended its half. Only Cut calls it off.
	Read(p []byte) (int, error)
	// CloseWrite says that nothing more will be written. The client hears it when the tunnel has ended.
	CloseWrite() error
	// Watch has left called when the client is no longer there, at once where that has come to pass already.
	Watch(left func())
}

// Tunnel carries the bytes of two connections to each other, untouched, after both have switched to WebSocket. A reader that is slow holds
// the other side's sender back. While no bytes come, no buffer is held.
//
// Either side may end its half, which ends the other's reading; what the other still sends within a while passes. A tunnel that the gateway
// ends, because it was idle or by Drain, ends between two frames, with a Close frame of status 1001 to both sides.
type Tunnel struct {
	idle time.Duration
	down pump      // to the client
	up   direction // to the upstream

	last atomic.Int64 // core.Instant at which bytes came last

	mu     sync.Mutex
	half   bool  // one side has ended its half
	why    error // set when the gateway ends the tunnel
	cutter *time.Timer
	ended  bool

	closing sync.WaitGroup // those that say Close for a reader that cannot be called off
}

const (
	// halfFor is how long the second side may be silent once the first has ended its half.
	halfFor = 10 * time.Second
	// closeFor is how long both sides have to take and answer a Close frame.
	closeFor = time.Second
)

// direction is one of the two ways that a tunnel's bytes go.
type direction interface {
	// run moves bytes until their sender has ended or the tunnel does.
	run()
	// stop has run end the direction with a Close frame. It is called with the tunnel's lock held, and does not wait.
	stop()
	// hurry says that the other direction has ended, and that this one may be silent until an instant. Likewise.
	hurry(until core.Instant)
	// passed are the bytes that went this way, after run.
	passed() int64
}

// NewTunnel joins a client, by its *Conn or Stream, and an upstream that have just been sent and received the 101. idle is how long both may be
// silent.
func NewTunnel(client End, upstream *Conn, idle time.Duration) *Tunnel {
	t := &Tunnel{idle: idle}
	t.down.join(t, upstream, client, false)
	switch c := client.(type) {
	case *Conn:
		up := new(pump)
		up.join(t, c, upstream, true)
		t.up = up
	case Stream:
		t.up = &inflow{t: t, from: c, to: upstream}
	}
	return t
}

// Run carries until the tunnel has ended; both connections are closed then. The error is nil when one of the two sides ended it, in
// good order or not at all, ErrTunnelIdle or ErrTunnelDrained. It is called once.
func (t *Tunnel) Run() error {
	t.last.Store(int64(core.Now()))
	t.down.to.WriteIdle(t.idle)
	t.down.from.WriteIdle(t.idle)
	if s, ok := t.down.to.(Stream); ok {
		s.Watch(t.abandon)
	}
	ended := make(chan struct{})
	go func() {
		t.up.run()
		close(ended)
	}()
	t.down.run()
	<-ended
	t.mu.Lock()
	t.ended = true
	if t.cutter != nil {
		t.cutter.Stop()
	}
	t.cut()
	why := t.why
	t.mu.Unlock()
	t.closing.Wait()
	return why
}

// Drain ends the tunnel in good order; Run returns within a second or so. Safe for concurrent use, also before and after Run.
func (t *Tunnel) Drain() { t.end(ErrTunnelDrained) }

// Passed are the bytes that went to the upstream and to the client. After Run.
func (t *Tunnel) Passed() (up, down int64) { return t.up.passed(), t.down.moved }

func (t *Tunnel) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != nil || t.ended {
		return
	}
	t.why = why
	t.cutWithin(closeFor)
	t.down.stop()
	t.up.stop()
}

// cutWithin bounds the rest of the tunnel's time. It is called with the lock held.
func (t *Tunnel) cutWithin(d time.Duration) {
	if t.cutter == nil {
		t.cutter = time.AfterFunc(d, t.abandon)
	}
}

// abandon cuts a tunnel that has not ended: its time is over, or its client gone.
func (t *Tunnel) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.cut()
	}
}

func (t *Tunnel) cut() {
	t.down.to.Cut()
	t.down.from.Cut()
}

// limit is the instant until which a side may be silent.
func (t *Tunnel) limit() core.Instant {
	idle := t.idle
	if t.half {
		idle = min(idle, halfFor)
	}
	return core.Instant(t.last.Load()).Add(idle)
}

// halve notes that the sender of a direction has ended its half.
func (t *Tunnel) halve(d direction) {
	t.last.Store(int64(core.Now()))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.half = true
	if t.why != nil {
		return
	}
	if other := t.up; d != other {
		other.hurry(t.limit())
	} else {
		t.down.hurry(t.limit())
	}
}

// wait sets a reader's deadline anew, unless the time is over or the tunnel is to end.
func (t *Tunnel) wait(c *Conn) bool {
	t.mu.Lock()
	limit := t.limit()
	over := core.Now() >= limit
	if t.why == nil && !over {
		_ = c.nc.SetReadDeadline(limit.Wall())
	}
	goesOn := t.why == nil && !over
	t.mu.Unlock()
	if over {
		t.end(ErrTunnelIdle)
	}
	return goesOn
}

// pump is a direction whose sender is a connection.
type pump struct {
	t      *Tunnel
	from   *Conn
	to     End
	masked bool // our own frames to the receiver are masked
	frames frames
	moved  int64

	raw syscall.RawConn       // of from; nil when it cannot be asked without a buffer
	try func(fd uintptr) bool // attempt, bound once
	buf []byte                // lent while there is something to move
	n   int                   // of buf
	err error
}

func (p *pump) join(t *Tunnel, from *Conn, to End, masked bool) {
	p.t, p.from, p.to, p.masked = t, from, to, masked
	if sc, ok := from.nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			p.raw, p.try = raw, p.attempt
		}
	}
}

// run moves bytes until its sender has ended or the tunnel does.
func (p *pump) run() {
	defer p.give()
	err := p.behind()
	if err == nil && !p.t.wait(p.from) {
		err = errEnding
	}
	for err == nil { // what waits in here is all that keeps the stack of an idle tunnel
		if err = p.read(); err == nil {
			err = p.move()
		}
	}
	switch {
	case err == errEnding:
		p.say()
	case errors.Is(err, ErrTimeout): // the receiver takes nothing
		p.t.end(ErrTunnelIdle)
		p.t.cut()
	case err != io.EOF || !p.endHalf():
		p.t.cut()
	}
}

func (p *pump) stop() { _ = p.from.nc.SetReadDeadline(time.Unix(1, 0)) }

func (p *pump) hurry(until core.Instant) { _ = p.from.nc.SetReadDeadline(until.Wall()) }

func (p *pump) passed() int64 { return p.moved }

// errEnding is how a direction hears that the gateway ends the tunnel.
var errEnding = errors.New("tunnel is to end")

// behind sends what came right behind the handshake.
func (p *pump) behind() error {
	c := p.from
	b := c.in[c.r:c.w]
	c.r = c.w
	return p.pass(b)
}

// move passes what was read.
func (p *pump) move() error {
	p.t.last.Store(int64(core.Now()))
	err := p.pass(p.buf[:p.n])
	switch {
	case p.n == len(p.buf) && p.n < streamSize: // a long message, most likely
		p.give()
		p.buf = TakeStream()
	case p.raw == nil && p.n < bufferSize:
		p.give()
	}
	return err
}

func (p *pump) pass(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	p.frames.follow(b)
	n, err := p.to.Write(b)
	p.moved += int64(n)
	return err
}

// read fills buf with what is there, waiting for it without holding one. Deadlines pass when nobody has sent for a while, or when the
// tunnel is to end.
func (p *pump) read() error {
	for {
		if p.raw != nil {
			p.n, p.err = 0, nil
			if err := p.raw.Read(p.try); err != nil {
				p.err = err
			}
		} else {
			p.take()
			p.n, p.err = p.from.nc.Read(p.buf)
		}
		switch {
		case p.n > 0:
			p.from.Read += int64(p.n)
			return nil
		case p.err == nil:
			return io.EOF
		case !errors.Is(p.err, os.ErrDeadlineExceeded):
			return p.err
		case !p.t.wait(p.from):
			return errEnding
		}
	}
}

// attempt reads once without waiting. It tells false when there is nothing to read yet.
func (p *pump) attempt(fd uintptr) bool {
	p.take()
	for {
		p.n, p.err = syscall.Read(int(fd), p.buf)
		if p.err != syscall.EINTR {
			break
		}
	}
	p.n = max(p.n, 0)
	if p.err == syscall.EAGAIN {
		p.give()
		return false
	}
	return true
}

func (p *pump) take() {
	if p.buf == nil {
		p.buf = takeSmall()
	}
}

func (p *pump) give() {
	if cap(p.buf) == streamSize {
		GiveStream(p.buf)
	} else {
		giveSmall(p.buf)
	}
	p.buf = nil
}

// endHalf passes the end of the sender's half on.
func (p *pump) endHalf() bool {
	if _, ok := p.to.(Stream); ok && !p.frames.whole() { // whose end shall not look as if all had come
		return false
	}
	if closeWrite(p.to) != nil {
		return false
	}
	p.t.halve(p)
	return true
}

var errNoHalf = errors.New("no half of the connection can be closed")

func closeWrite(to End) error {
	if c, ok := to.(*Conn); ok {
		if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
			return half.CloseWrite()
		}
		return errNoHalf
	}
	return to.(Stream).CloseWrite()
}

// say ends the direction with a Close frame, between two frames of the sender, and then reads on until the sender has answered the Close
// that it gets from the other direction. The cutter ends what takes too long.
func (p *pump) say() {
	_ = p.from.nc.SetReadDeadline(time.Time{})
	p.take()
	for !p.frames.whole() {
		n, err := p.from.nc.Read(p.buf)
		if err != nil {
			return
		}
		end := p.frames.rest(p.buf[:n])
		if n, err = p.to.Write(p.buf[:end]); err != nil {
			return
		}
		p.moved += int64(n)
	}
	if !p.frames.closed {
		if _, err := p.to.Write(appendClose(nil, goingAway, p.masked)); err != nil {
			return
		}
	}
	if s, ok := p.to.(Stream); ok {
		_ = s.CloseWrite()
	}
	for !p.frames.closed || !p.frames.whole() {
		n, err := p.from.nc.Read(p.buf)
		if err != nil {
			return
		}
		p.frames.follow(p.buf[:n])
	}
}
