package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// stall ends the reads and writes of a stream whose client is too slow for them. The deadlines that the standard library has for a stream
// go on while nobody reads or writes, and setting them costs as much as a frame; this is a few stores for each operation and a timer for a
// stream that lasts.
type stall struct {
	pace    *http1.Pace
	reading operation
	writing operation
	eased   atomic.Bool // reads have no pace
	once    sync.Once
	timer   *time.Timer // nil until something is watched
}

// operation is the reading or the writing of a stream. One goroutine at a time reads, one writes.
type operation struct {
	since atomic.Int64 // core.Instant at which the one under way began, 0: none is
	until atomic.Int64 // core.Instant at which it is to end
	ended error        // why it was ended; guarded by stream.mu

	patience http1.Patience
	begun    bool // one has ended: the wait of the first is not charged

	excused atomic.Bool // it waits for the whole connection, which has its own pace
	seen    uint64      // the connection's write that was under way when its time was over; the timer's own
}

// begin starts the stream's time.
func (s *stall) begin(p *http1.Pace) {
	s.pace = p
	s.reading.patience.Begin(p)
	s.writing.patience.Begin(p)
}

// slice is a part of the time that a client may be late by.
func (s *stall) slice() time.Duration { return min(s.pace.Idle, s.pace.Grace) / 4 }

// watch notes that an operation begins, and when.
func (c *stream) watch(o *operation) core.Instant {
	now, d := core.Now(), c.stall.pace.Idle
	if o.patience.Ends() {
		d = min(d, max(o.patience.Left(), 0))
	}
	o.until.Store(int64(now.Add(d)))
	o.since.Store(int64(now))
	c.stall.once.Do(func() {
		c.mu.Lock()
		c.stall.timer = time.AfterFunc(d, c.look)
		c.mu.Unlock()
	})
	return now
}

// done notes that an operation has ended that moved n bytes.
func (o *operation) done(began core.Instant, n int) {
	o.since.Store(0)
	switch {
	case !o.begun || o.excused.Load():
		o.begun = true
		o.excused.Store(false)
		o.patience.Moved(n)
	default:
		o.patience.Took(began, n)
	}
}

// why is the reason for which an operation was ended, err when it ended by itself.
func (c *stream) why(o *operation, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.ended != nil {
		return o.ended
	}
	if slow := c.conn.out.slow(); slow != nil {
		return slow
	}
	return err
}

// look ends what takes too long and looks again when the next may.
func (c *stream) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.live {
		return
	}
	s := &c.stall
	next := s.pace.Idle
	if s.reading.patience.Ends() || s.writing.patience.Ends() {
		next = min(next, s.pace.Grace)
	}
	past := time.Unix(1, 0)
	now := core.Now()
	if left := c.lookAt(&s.reading, now); left <= 0 {
		_ = c.control.SetReadDeadline(past)
	} else {
		next = min(next, left)
	}
	if left := c.lookAt(&s.writing, now); left <= 0 {
		_ = c.control.SetWriteDeadline(past)
	} else {
		next = min(next, left)
	}
	s.timer.Reset(next)
}

// lookAt gives the time that an operation has left. It is called with c.mu held.
func (c *stream) lookAt(o *operation, now core.Instant) time.Duration {
	s := &c.stall
	since, until := core.Instant(o.since.Load()), core.Instant(o.until.Load())
	if since == 0 {
		return s.pace.Idle
	}
	idle := since.Add(s.pace.Idle)
	if o == &s.reading && s.eased.Load() {
		until = idle
	}
	if left := until.Sub(now); left > 0 {
		o.seen = 0
		return left
	}
	if o == &s.writing && c.conn.out.stands(&o.seen) {
		o.excused.Store(true)
		return max(s.slice(), time.Millisecond)
	}
	if o.ended = http1.ErrTimeout; until < idle {
		o.ended = &http1.SlowError{Rate: s.pace.Rate}
	}
	return 0
}

// stop tells whether the timer will not call any more.
func (s *stall) stop() bool { return s.timer == nil || s.timer.Stop() }

// reset makes the stream ready for another request.
func (c *stream) reset() {
	c.srv, c.conn, c.w, c.control, c.x, c.body, c.broken = nil, nil, nil, nil, nil, body2{}, false
	c.piece, c.socket = 0, nil
	s := &c.stall
	s.pace, s.once, s.timer = nil, sync.Once{}, nil
	s.reading.reset()
	s.writing.reset()
	s.eased.Store(false)
	if cap(c.lines.text) > 16<<10 {
		c.lines = lines{}
	}
}

func (o *operation) reset() {
	o.since.Store(0)
	o.excused.Store(false)
	o.ended, o.begun, o.seen = nil, false, 0
}
