package proxy

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// upload sends a request's body while the leg waits for the answer and passes it on.
type upload struct {
	done chan struct{} // closed when the sender has ended; nil without one
	sent atomic.Int64  // core.Instant at which it ended
	err  error         // of the sender; read after done

	interrupted bool // the sender was ended before it had all of the body
}

func (u *upload) start(l *Leg, head []byte) {
	u.done, u.err, u.interrupted = make(chan struct{}), nil, false
	u.sent.Store(0)
	l.x.Request.Uploading = true
	l.x.Request.ExpectPassed = l.x.Request.Expect
	conn, body := l.conn, &l.x.Request.Body
	chunked := body.Length() < 0
	go func() {
		defer close(u.done)
		_, err := http1.SendBody(conn.Conn, head, body, chunked)
		u.err = err
		u.sent.Store(int64(core.Now()))
		if _, client := errors.AsType[*http1.ReadError](err); client || errors.Is(err, http1.ErrTimeout) {
			conn.Cut() // no answer to half a request is worth waiting for
		}
	}()
}

// active tells whether body bytes are still on their way.
func (u *upload) active() bool { return u.done != nil && u.sent.Load() == 0 }

// clean tells whether all of the body went out. Only after stop.
func (u *upload) clean() bool { return u.err == nil }

// lastBytes is how long a sender that is about to end is waited for. On a busy machine one that has sent all may not have said so yet, and
// the client would find its connection closed.
const lastBytes = 100 * time.Millisecond

var errStopped = errors.New("answered before the body was sent")

// stop ends the sender, if there is one.
func (u *upload) stop(l *Leg) {
	if u.done == nil {
		return
	}
	select {
	case <-u.done:
	case <-time.After(lastBytes):
		u.interrupted = true
		if _, whole := l.x.Request.Body.Whole(); !whole {
			l.client.StopBody()
		}
		l.conn.Cut()
		<-u.done
		if r, ok := errors.AsType[*http1.ReadError](u.err); !ok || errors.Is(r, http1.ErrTimeout) { // a fault of the client stays its fault
			u.err = errStopped
		}
	}
	u.done = nil
	l.x.Request.Uploading = false
}

// stalled tells whether the endpoint stopped taking the body for longer than it may. Only after stop.
func (u *upload) stalled() bool { return u.fault() == nil && errors.Is(u.err, http1.ErrTimeout) }

// fault is the client's error behind a body that could not be sent, nil when it was not the client's. Only after stop.
func (u *upload) fault() error {
	if r, ok := errors.AsType[*http1.ReadError](u.err); ok {
		return r.Err
	}
	return nil
}
