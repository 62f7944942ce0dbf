package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// wire is a connection that speaks HTTP/2. It looks at the heads of the frames that the endpoint sends, for what the standard library does not
// tell: that its settings have been heard, and that it will take no more requests.
type wire struct {
	net.Conn
	settled chan struct{} // closed once the endpoint's settings have been heard, or never will be
	once    sync.Once
	err     error       // why they never will be; after settled
	leaving atomic.Bool // it takes no more requests: the endpoint has said GOAWAY, or it is lost
	lost    atomic.Bool // it has ended, and not by this side

	head  [9]byte // of the frame under way
	have  int     // bytes of head
	left  int     // bytes of its payload
	heard bool    // the frame of settings is whole
	parts int     // frames that go on with a header block
}

// Frame types and a flag of RFC 9113 section 6.
const (
	frameSettings     = 4
	frameGoAway       = 7
	frameContinuation = 9
	flagAck           = 1
)

// maxParts bounds the frames of a header block. The standard library bounds the bytes alone, and reads empty ones for ever.
const maxParts = 1000

var errManyParts = errors.New("malformed: header block in too many frames")

// Read implements net.Conn. What was read before has been worked on when the next is asked for.
func (w *wire) Read(p []byte) (int, error) {
	if w.heard {
		w.settle(nil)
	}
	n, err := w.Conn.Read(p)
	w.see(p[:n])
	if w.parts > maxParts {
		w.leaving.Store(true)
		return 0, errManyParts
	}
	w.note(err)
	return n, err
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.note(err)
	return n, err
}

// note looks at how reading or writing went.
func (w *wire) note(err error) {
	if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	w.leaving.Store(true)
	w.lost.Store(true)
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.settle(errNoSettings)
	return w.Conn.Close()
}

var errNoSettings = errors.New("the endpoint does not speak HTTP/2, or closed the connection at once")

func (w *wire) settle(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.settled)
	})
}

func (w *wire) see(b []byte) {
	for len(b) > 0 {
		if w.have < len(w.head) {
			n := copy(w.head[w.have:], b)
			w.have += n
			if b = b[n:]; w.have < len(w.head) {
				return
			}
			w.left = int(w.head[0])<<16 | int(w.head[1])<<8 | int(w.head[2])
			w.leaving.Store(w.leaving.Load() || w.head[3] == frameGoAway)
			if w.head[3] == frameContinuation {
				w.parts++
			} else {
				w.parts = 0
			}
		}
		n := min(w.left, len(b))
		w.left -= n
		if b = b[n:]; w.left == 0 {
			w.have = 0
			w.heard = w.heard || w.head[3] == frameSettings && w.head[4]&flagAck == 0
		}
	}
}

// await waits for the endpoint's settings: what it allows is known from then on.
func (w *wire) await(ctx context.Context) error {
	select {
	case <-w.settled:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
