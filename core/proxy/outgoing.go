package proxy

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// keptBody is how much of a body is kept until the answer comes, for an endpoint that says, with some of it sent, that it has not looked at the
// request.
const keptBody = 32 << 10

// outgoing is a request's body as the transport of HTTP/2 reads it, in a goroutine of its own.
type outgoing struct {
	r       *round
	none    bool
	asked   bool        // the client was asked for it, if it held it back
	trailer http.Header // announced names; their values come at the end

	mu      sync.Mutex
	idle    sync.Cond    // signalled when reading ends
	reading bool         // the body is being read: the client is waited for
	since   core.Instant // of the last change of reading
	stopped bool
	settled bool  // the answer has come: the body is sent once
	closed  bool  // the transport wants no more
	cut     bool  // a read was ended by this side
	err     error // of the client
}

func (o *outgoing) begin(r *round, now core.Instant) {
	body := &r.l.x.Request.Body
	o.r, o.since, o.none = r, now, body.None() || body.Length() == 0
	o.idle.L = &o.mu
	if body.Rewind(); !o.none {
		body.Keep(keptBody)
	}
	r.l.x.Request.Uploading = !o.none
}

// Read implements io.Reader for the transport.
func (o *outgoing) Read(p []byte) (int, error) {
	if !o.enter() {
		return 0, errEnded
	}
	if !o.asked {
		if o.asked = true; !o.r.ask() {
			o.mu.Lock()
			o.leave()
			o.mu.Unlock()
			<-o.r.ctx.Done()
			return 0, errEnded
		}
	}
	body := &o.r.l.x.Request.Body
	n, err := body.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settled {
		body.Forget()
	}
	if err == io.EOF {
		for _, f := range body.Trailer.Fields() {
			name := http.CanonicalHeaderKey(string(f.Name))
			if _, announced := o.trailer[name]; announced {
				o.trailer[name] = append(o.trailer[name], string(f.Value))
			}
		}
	} else if err != nil && !o.cut {
		o.err = err
		o.r.cancel(err) // no answer to half a request is worth waiting for
	}
	o.leave()
	return n, err
}

// enter makes sure that the exchange goes on until leave. It tells false when it has ended.
func (o *outgoing) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || o.closed {
		return false
	}
	o.reading, o.since = true, core.Now()
	return true
}

// leave is called with the lock held.
func (o *outgoing) leave() {
	o.reading, o.since = false, core.Now()
	o.idle.Broadcast()
}

// ask has a client that holds its body back send it. It tells false when the answer has come first: then the body is of no use, and the client
// is written to by others.
func (r *round) ask() bool {
	q := &r.l.x.Request
	if _, whole := q.Body.Whole(); whole {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !q.Expect {
		return true
	}
	return !r.over && r.l.client.Continue() == nil
}

// Close implements io.Closer for the transport, which calls it when it wants no more of the body. It may do so while it reads, and then waits
// for the read before it tells anybody why: a client that says nothing would keep what the endpoint has said for itself.
func (o *outgoing) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed = true; o.waits() {
		time.AfterFunc(lastBytes, o.interrupt)
	}
	return nil
}

// waits tells whether a read keeps the answer to a try from being known. It is called with the lock held.
func (o *outgoing) waits() bool { return o.reading && !o.settled && !o.stopped }

func (o *outgoing) interrupt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits() {
		o.cut = true
		o.r.l.client.StopBody()
	}
}

// settle says that the answer has come.
func (o *outgoing) settle() {
	o.mu.Lock()
	o.settled = true
	o.mu.Unlock()
}

// waiting is since when the endpoint takes nothing of what it could have; now while the client is waited for.
func (o *outgoing) waiting(now core.Instant) core.Instant {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reading {
		return now
	}
	return o.since
}

// fault is the client's error, nil when the body could be read as far as it was.
func (o *outgoing) fault() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// stop lets nobody read the body any more. A read that is under way is given a moment and then ended; that of a call of gRPC at once, since such
// calls are often over before their client is.
func (o *outgoing) stop() {
	if o.none {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	if o.reading {
		client, ended := o.r.l.client, make(chan struct{})
		moment := lastBytes
		if o.r.l.x.Request.IsGRPC() {
			moment = 0
		}
		timer := time.AfterFunc(moment, func() {
			defer close(ended)
			client.StopBody()
		})
		for o.reading {
			o.idle.Wait()
		}
		if !timer.Stop() {
			<-ended // the client's end serves another exchange soon
		}
	}
	o.r.l.x.Request.Uploading = false
}
