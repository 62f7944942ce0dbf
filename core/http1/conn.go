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

	reads   reading
	writes  *writing // own, or that of the socket below TLS
	own     writing
	brimful bool // the last read took all that it had room for

	// Read and Written count the bytes that passed, heads included.
	Read    int64
	Written int64
}

// NewConn takes over a connection.
func NewConn(nc net.Conn) *Conn {
	c := &Conn{nc: nc}
	if c.writes = &c.own; layered(nc) != nil {
		c.writes = layered(nc)
	}
	return c
}

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
	c.reads.idle, c.reads.hard, c.reads.hasty = 0, 0, false
	c.reads.within(now, d, c.nc.SetReadDeadline)
}

// Pace says how fast a client has to be with the message that begins now. p stays as it is until the next call.
func (c *Conn) Pace(p *Pace) {
	r := &c.reads
	r.idle, r.hard, r.fresh = p.Idle, 0, true
	r.patience.Begin(p)
	r.eased.Store(false)
	c.writes.allow(p.Idle, p)
}

// EaseReads lets the client send the rest of its message in its own time; no read takes longer than it may all the same. Safe for
// concurrent use with a reader.
func (c *Conn) EaseReads() { c.reads.eased.Store(true) }

// ReadIdle gives each of the reads that follow d, and all of them together until hard when hard is not 0.
func (c *Conn) ReadIdle(d time.Duration, hard core.Instant) { c.reads.idle, c.reads.hard = d, hard }

// WriteIdle gives each of the writes that follow d to move on; no pace is asked of them any more.
func (c *Conn) WriteIdle(d time.Duration) { c.writes.allow(d, nil) }

// WritesEnd gives what is being written, and what may still be, d and no more. Safe for concurrent use with a writer.
func (c *Conn) WritesEnd(d time.Duration) error {
	if below := layeredOn(c.nc); below != nil {
		return c.writes.stop(below, d)
	}
	return c.writes.stop(c.nc, d)
}

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
	set := c.nc.SetReadDeadline
	began, err := c.reads.begin(set)
	if err != nil {
		return 0, err
	}
	for {
		n, err := c.nc.Read(p)
		c.Read += int64(n)
		if n > 0 || err == nil {
			c.brimful = n == len(p)
			c.reads.took(began, n)
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if err := c.reads.missed(began, set); err != nil {
			return 0, err
		}
	}
}

// Write writes all of p.
func (c *Conn) Write(p []byte) (n int, err error) {
	if c.writes == &c.own {
		n, err = c.own.write(c.nc, p)
	} else { // the limits hold below
		n, err = c.nc.Write(p)
	}
	c.Written += int64(n)
	return n, err
}

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
