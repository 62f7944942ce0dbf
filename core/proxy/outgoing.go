package proxy

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// outgoing is a request's body as the transport of HTTP/2 reads it, in a goroutine of its own.
type outgoing struct {
	r       *round
	none    bool
	trailer http.Header // announced names; their values come at the end

	mu      sync.Mutex
	idle    sync.Cond    // signalled when reading ends
	reading bool         // the body is being read: the client is waited for
	since   core.Instant // of the last change of reading
	stopped bool
	err     error // of the client
}

func (o *outgoing) begin(r *round, now core.Instant) {
	body := &r.l.x.Request.Body
	o.r, o.since, o.none = r, now, body.None() || body.Length() == 0
	o.idle.L = &o.mu
	body.Rewind()
	r.l.x.Request.Uploading = !o.none
}

// Read implements io.Reader for the transport.
func (o *outgoing) Read(p []byte) (int, error) {
	o.mu.Lock()
	if o.stopped {
		o.mu.Unlock()
		return 0, errEnded
	}
	o.reading, o.since = true, core.Now()
	o.mu.Unlock()
	body := &o.r.l.x.Request.Body
	n, err := body.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == io.EOF {
		for _, f := range body.Trailer.Fields() {
			name := http.CanonicalHeaderKey(string(f.Name))
			if _, announced := o.trailer[name]; announced {
				o.trailer[name] = append(o.trailer[name], string(f.Value))
			}
		}
	} else if err != nil {
		o.err = err
		o.r.cancel(err) // no answer to half a request is worth waiting for
	}
	o.reading, o.since = false, core.Now()
	o.idle.Broadcast()
	return n, err
}

// Close implements io.Closer for the transport, which may call it while it reads.
func (o *outgoing) Close() error { return nil }

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

// stop lets nobody read the body any more. A read that is under way is given a moment and then ended.
func (o *outgoing) stop() {
	if o.none {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	if o.reading {
		client, ended := o.r.l.client, make(chan struct{})
		timer := time.AfterFunc(lastBytes, func() {
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
