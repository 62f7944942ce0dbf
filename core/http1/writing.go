package http1

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// writing is the time limits of a connection's writes. A write that stands still is tried again a few times within its limit: the kernel
// says that a peer has taken something only when a good part of what it holds is gone.
type writing struct {
	idle     time.Duration // for a write to move on; 0: no limit
	slice    time.Duration // after which it is tried again
	armed    core.Instant  // deadline that the connection knows, 0: none
	patience Patience
	stopped  atomic.Bool
}

// writeSlices is how often, within the time that a write may make no progress, it is looked whether it made some.
const writeSlices = 4

func (w *writing) allow(idle time.Duration, p *Pace) {
	w.idle, w.slice = idle, idle/writeSlices
	if w.patience.Begin(p); w.patience.Ends() {
		w.slice = max(min(idle, p.Grace)/writeSlices, time.Millisecond)
	}
}

// write writes all of p.
func (w *writing) write(nc net.Conn, p []byte) (done int, err error) {
	s := w.begin(nc)
	for {
		n, err := nc.Write(p[done:])
		done += n
		w.patience.Moved(n)
		if err == nil || done == len(p) {
			return done, w.end(&s)
		}
		if err = w.missed(&s, nc, n, err); err != nil {
			return done, err
		}
	}
}

// standing is a write under way.
type standing struct {
	from  core.Instant // since when it was not charged
	moved core.Instant // when a byte last went out
	late  bool         // a deadline has passed
}

func (w *writing) begin(nc net.Conn) (s standing) {
	if w.idle == 0 || w.stopped.Load() {
		return s
	}
	s.from = core.Now()
	s.moved = s.from
	w.arm(nc, s.from)
	return s
}

// missed is called when a write ended with an error after n bytes. nil lets it go on.
func (w *writing) missed(s *standing, nc net.Conn, n int, err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if w.idle == 0 || w.stopped.Load() {
		w.armed = 0
		return ErrTimeout
	}
	now := core.Now()
	waited := now.Sub(s.from)
	s.from, s.late, w.armed = now, true, 0
	if n > 0 { // slow, but alive
		s.moved = now
	}
	if err := w.patience.Wait(waited); err != nil {
		return err
	}
	if now.Sub(s.moved) >= w.idle {
		return ErrTimeout
	}
	w.arm(nc, now)
	if w.stopped.Load() {
		return ErrTimeout
	}
	return nil
}

// end charges what is left of a write that had to wait.
func (w *writing) end(s *standing) error {
	if s.late {
		_ = w.patience.Wait(core.Now().Sub(s.from)) // it did move on
	}
	return nil
}

func (w *writing) arm(nc net.Conn, now core.Instant) {
	if limit := now.Add(w.slice); w.armed == 0 || w.armed > limit {
		w.armed = limit
		_ = nc.SetWriteDeadline(limit.Wall())
	}
}

// stop lets what is being written, and what may still be, have d and no more.
func (w *writing) stop(nc net.Conn, d time.Duration) error {
	w.stopped.Store(true)
	return nc.SetWriteDeadline(time.Now().Add(d))
}
