package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// stall ends the reads and writes of a stream that stand still for longer than span. The deadlines that the standard library has for a stream
// go on while nobody reads or writes, and setting them costs as much as a frame; this is two stores for each operation and a timer for a
// stream that lasts.
type stall struct {
	span    time.Duration
	reading atomic.Int64 // core.Instant since which a read waits, 0: none does
	writing atomic.Int64 // likewise
	once    sync.Once
	timer   *time.Timer // nil until something is watched
}

// watch notes that an operation begins. The caller stores 0 when it has ended.
func (c *stream) watch(since *atomic.Int64) {
	since.Store(int64(core.Now()))
	c.stall.once.Do(func() {
		c.mu.Lock()
		c.stall.timer = time.AfterFunc(c.stall.span, c.look)
		c.mu.Unlock()
	})
}

// look ends what stands still and looks again when the next may.
func (c *stream) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.live {
		return
	}
	now, next := core.Now(), c.stall.span
	past := time.Unix(1, 0)
	for _, op := range []struct {
		since *atomic.Int64
		end   func(time.Time) error
	}{{&c.stall.reading, c.control.SetReadDeadline}, {&c.stall.writing, c.control.SetWriteDeadline}} {
		since := core.Instant(op.since.Load())
		if since == 0 {
			continue
		}
		left := c.stall.span - now.Sub(since)
		if left <= 0 {
			_ = op.end(past)
			continue
		}
		next = min(next, left)
	}
	c.stall.timer.Reset(next)
}

// stop tells whether the timer will not call any more.
func (s *stall) stop() bool { return s.timer == nil || s.timer.Stop() }

// reset makes the stream ready for another request.
func (c *stream) reset() {
	c.srv, c.conn, c.w, c.control, c.x, c.body, c.broken = nil, nil, nil, nil, nil, body2{}, false
	c.stall.once, c.stall.timer = sync.Once{}, nil
	c.stall.reading.Store(0)
	c.stall.writing.Store(0)
	if cap(c.lines.text) > 16<<10 {
		c.lines = lines{}
	}
}
