package http1

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/moongate/moongate/core"
)

// inflow is the direction from a client whose end is a stream. Its reads cannot be called off; so when the gateway ends the tunnel it is not the
// reader that says Close, unless a frame is under way: then it does so behind it, and reads on for the client's.
type inflow struct {
	t    *Tunnel
	from Stream
	to   *Conn

	mu       sync.Mutex // guards what follows, and writing
	frames   frames
	moved    int64
	stopping bool // the tunnel is to end
	said     bool // and the upstream has been told

	closed atomic.Bool // the client's Close has passed
	last   atomic.Bool // the upstream has ended: no more than that Close is waited for

	filled bool // the last buffer was
}

func (p *inflow) run() {
	var err error
	for err == nil {
		if _, err = p.from.Read(nil); err == nil {
			err = p.move()
		}
	}
	switch {
	case err == errEnding:
	case errors.Is(err, ErrTimeout): // the upstream takes nothing
		p.t.end(ErrTunnelIdle)
		p.t.cut()
	case err != io.EOF || !p.endHalf():
		p.t.cut()
	}
}

// move passes what is there. The buffer is a long one where the last was filled.
func (p *inflow) move() error {
	take, give := takeSmall, giveSmall
	if p.filled {
		take, give = TakeStream, GiveStream
	}
	buf := take()
	defer give(buf)
	n, err := p.from.Read(buf)
	p.filled = n == len(buf)
	if n == 0 {
		return err
	}
	return p.pass(buf[:n], err)
}

// pass brings b to the upstream, as far as it still wants it. after is what the reader has been told behind it.
func (p *inflow) pass(b []byte, after error) error {
	p.t.last.Store(int64(core.Now()))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping && !p.said {
		n := p.frames.rest(b)
		if err := p.write(b[:n]); err != nil {
			return err
		}
		if b = b[n:]; p.frames.whole() {
			if err := p.say(); err != nil {
				return err
			}
		}
	}
	p.frames.follow(b)
	if !p.said {
		if err := p.write(b); err != nil {
			return err
		}
	}
	if p.frames.closed && p.frames.whole() {
		if p.closed.Store(true); p.said || p.last.Load() {
			return errEnding
		}
	}
	return after
}

func (p *inflow) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := p.to.Write(b)
	p.moved += int64(n)
	return err
}

// say tells the upstream that the tunnel ends, unless the client has. It is called between two frames.
func (p *inflow) say() error {
	if p.said = true; p.frames.closed {
		return nil
	}
	_, err := p.to.Write(appendClose(nil, goingAway, true))
	return err
}

// endHalf passes the end of the client's half on.
func (p *inflow) endHalf() bool {
	if closeWrite(p.to) != nil {
		return false
	}
	p.t.halve(p)
	return true
}

func (p *inflow) stop() {
	p.t.closing.Go(func() { // the lock may be held by a write
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.stopping = true; p.frames.whole() && p.say() != nil {
			p.t.abandon()
		}
	})
}

// hurry is called when the upstream has ended its half. The client cannot hear so before the tunnel has ended. What it still says would go
// where nobody can answer; but a Close of the upstream's is worth the moment that the client's own takes.
func (p *inflow) hurry(core.Instant) {
	if p.t.down.frames.closed {
		if p.last.Store(true); !p.closed.Load() {
			p.t.cutWithin(closeFor)
			return
		}
	}
	p.from.Cut()
}

func (p *inflow) passed() int64 { return p.moved }
