package http1

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/moongate/moongate/core"
)

// ErrTimeout is what a read or a write ends with when its time limit has passed.
var ErrTimeout = errors.New("time limit passed")

// Conn is one connection, the client's or an upstream's. Reading and writing are independent of each other, so one goroutine may
// read while another writes; nothing else is safe for concurrent use but Cut.
//
// The read buffer holds a head at its front, pinned there until Release, because the head's fields lie in it; body bytes pass through
// the rest.
type Conn struct {
	nc net.Conn

	in   []byte  // read buffer; nil while idle
	pin  int     // in[:pin] is held by a head or by trailers
	r, w int     // in[r:w] is read and not yet consumed
	old  []byte  // a full buffer that still holds the head
	one  [1]byte // what a resting connection reads into

	Out []byte // write buffer: what is assembled here goes out with Flush

	reads, writes timer

	// Read and Written count the bytes that passed, heads included.
	Read    int64
	Written int64
}

// NewConn takes over a connection.
func NewConn(nc net.Conn) *Conn { return &Conn{nc: nc} }

// NetConn is the connection below.
func (c *Conn) NetConn() net.Conn { return c.nc }

// Cut ends all pending I/O of the connection at once and for good. Safe for concurrent use.
func (c *Conn) Cut() { _ = c.nc.Close() }

// Close cuts the connection and gives its buffers back. The caller is the only user left.
func (c *Conn) Close() {
	c.Cut()
	c.Rest()
}

// Rest gives the buffers back for as long as the connection is idle. What is buffered must have been consumed.
func (c *Conn) Rest() {
	giveSmall(c.in)
	giveSmall(c.old)
	giveSmall(c.Out)
	c.in, c.old, c.Out = nil, nil, nil
	c.pin, c.r, c.w = 0, 0, 0
}

// Held is the memory in which the fields of a head (and trailers) lie, apart from their connection.
type Held struct{ in, old []byte }

// Detach takes the last head's memory from the connection, which may then be used for the next message while the fields stay valid. What is
// buffered must have been consumed.
func (c *Conn) Detach() Held {
	h := Held{c.in, c.old}
	c.in, c.old = nil, nil
	c.pin, c.r, c.w = 0, 0, 0
	return h
}

// Shrink moves the head, and what is buffered behind it, to memory of just their size, and gives the write buffer back, for a connection that
// will be idle for long with its head in use. move is called with the old and the new memory while both hold the head.
func (c *Conn) Shrink(move func(from, to []byte)) {
	giveSmall(c.Out)
	c.Out = nil
	if c.in == nil || c.old != nil {
		return
	}
	from, to := c.in, append(make([]byte, 0, c.w), c.in[:c.w]...)
	move(from[:c.w], to)
	c.in = to
	giveSmall(from)
}

// Release ends the fields' life.
func (h *Held) Release() {
	giveSmall(h.in)
	giveSmall(h.old)
	*h = Held{}
}

// Release lets go of the head (and trailers) that were parsed last; their fields are invalid from here on.
func (c *Conn) Release() {
	if c.old != nil {
		giveSmall(c.old)
		c.old = nil
	}
	c.pin = 0
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
}

// Buffered is the number of bytes that were read and not consumed.
func (c *Conn) Buffered() int { return c.w - c.r }

// ReadWithin sets the time limit of the reads that follow: all must end before now + d.
func (c *Conn) ReadWithin(now core.Instant, d time.Duration) {
	c.reads.idle, c.reads.hard = 0, 0
	c.reads.within(now, d, c.nc.SetReadDeadline)
}

// ReadIdle gives each of the reads that follow d, and all of them together until hard when hard is not 0.
func (c *Conn) ReadIdle(d time.Duration, hard core.Instant) { c.reads.idle, c.reads.hard = d, hard }

// WriteIdle gives each of the writes that follow d to move on.
func (c *Conn) WriteIdle(d time.Duration) { c.writes.idle = d }

// Interrupt makes pending and later reads fail with ErrTimeout until a new limit is set. It is for a reader in another goroutine
// that is no longer wanted.
func (c *Conn) Interrupt() {
	c.reads.stopped.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// Resume takes Interrupt back once the reader has ended.
func (c *Conn) Resume() {
	c.reads.stopped.Store(false)
	c.reads.armed = 0
}

// fill reads once into the buffer's free part; there is at least one byte more afterwards or an error.
func (c *Conn) fill() error {
	switch {
	case c.in == nil:
		c.in = takeSmall()
	case c.r == c.w && c.r > c.pin:
		c.r, c.w = c.pin, c.pin
	}
	if c.w == len(c.in) {
		c.makeRoom()
	}
	n, err := c.read(c.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return err
}

// makeRoom finds space behind in[r:w]: it moves the bytes down to the pin or, when a head takes most of the buffer, goes on in
// another buffer and keeps the full one until Release.
func (c *Conn) makeRoom() {
	unread := c.in[c.r:c.w]
	if c.r > c.pin && len(c.in)-c.pin >= bufferSize/4 {
		c.w = c.pin + copy(c.in[c.pin:], unread)
		c.r = c.pin
		return
	}
	size := len(c.in)
	if len(unread) >= size/2 {
		size *= 2
	}
	next := takeSmall()
	if size > len(next) {
		giveSmall(next)
		next = make([]byte, size)
	}
	c.w = copy(next, unread)
	c.r = 0
	switch {
	case c.pin == 0:
		giveSmall(c.in)
	case c.old == nil:
		c.old = c.in
	default: // a third buffer: the second holds trailers that are still in use, so the collector keeps it
	}
	c.in, c.pin = next, 0
}

// readBody reads body bytes into p: from the buffer, or straight from the connection when p is large.
func (c *Conn) readBody(p []byte) (int, error) {
	if c.r == c.w {
		if len(p) >= bufferSize {
			return c.read(p)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in[c.r:c.w])
	c.r += n
	return n, nil
}

func (c *Conn) read(p []byte) (int, error) {
	if d := c.reads.idle; d > 0 {
		c.reads.within(core.Now(), d, c.nc.SetReadDeadline)
	}
	if c.reads.stopped.Load() {
		return 0, ErrTimeout
	}
	for {
		n, err := c.nc.Read(p)
		c.Read += int64(n)
		if n > 0 || err == nil {
			return n, nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if c.reads.again(c.nc.SetReadDeadline) {
				continue
			}
			return 0, ErrTimeout
		}
		return 0, err
	}
}

// Write writes all of p.
func (c *Conn) Write(p []byte) (int, error) {
	idle := c.writes.idle
	var moved core.Instant // when a byte last went out
	if idle > 0 {
		moved = core.Now()
		c.writes.within(moved, idle/writeSlices, c.nc.SetWriteDeadline)
	}
	done := 0
	for done < len(p) {
		n, err := c.nc.Write(p[done:])
		done += n
		c.Written += int64(n)
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return done, err
		}
		now := core.Now()
		if n > 0 { // slow, but alive
			moved = now
		}
		if c.writes.armed = 0; now.Sub(moved) >= idle {
			return done, ErrTimeout
		}
		c.writes.within(now, idle/writeSlices, c.nc.SetWriteDeadline)
	}
	return done, nil
}

// writeSlices is how often, within the time that a write may make no progress, it is looked whether it made some.
const writeSlices = 4

// Begin empties the write buffer and returns it for appending.
func (c *Conn) Begin() []byte {
	if c.Out == nil {
		c.Out = takeSmall()
	}
	return c.Out[:0]
}

// Flush writes what was assembled and keeps the buffer.
func (c *Conn) Flush(b []byte) error {
	c.Out = b[:0]
	if cap(b) > 16<<10 {
		c.Out = nil
	}
	_, err := c.Write(b)
	return err
}
