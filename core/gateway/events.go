package gateway

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/proxy"
)

// streamsEvents tells whether an answer may go on for ever: events (text/event-stream) of unknown length.
func streamsEvents(x *core.Exchange) bool {
	w := &x.Response
	if w.Body.Length() >= 0 || w.Source != core.FromUpstream {
		return false
	}
	const name = "text/event-stream"
	kind := w.Header.GetKind(core.KindContentType)
	return len(kind) >= len(name) && core.EqualFoldString(kind[:len(name)], name)
}

// sendEvents sends a stream of events that ends in good order when its route or its endpoint goes, or the process: between two events, so that
// clients connect anew and miss none.
func (g *Gateway) sendEvents(x *core.Exchange, client core.Client, pass *plan, leg *proxy.Leg) error {
	e := &events{leg: leg, whole: true}
	x.Response.Body.Wrap(e.over)
	t := g.enter(x, e.end)
	err := g.deliver(x, client, pass)
	g.leave(t)
	if e.close() && x.Err == nil {
		x.Err = http1.ErrTunnelDrained
	}
	return err
}

// events reads a stream of events and knows where one ends.
type events struct {
	src    *core.Body
	ending atomic.Bool
	idle   atomic.Bool // between two events: the reader waits, or is about to
	last   [2]byte     // that were read, without carriage returns
	whole  bool        // nothing of an event has been read since the last one's end

	mu  sync.Mutex
	leg *proxy.Leg // nil once the answer has been sent
}

func (e *events) over(src *core.Body) io.Reader {
	e.src = src
	return e
}

// lastEvent is how long an event that has begun has to end.
const lastEvent = time.Second

// end makes the stream end behind the current event.
func (e *events) end() {
	e.ending.Store(true)
	if e.idle.Load() {
		e.interrupt()
		return
	}
	time.AfterFunc(lastEvent, e.interrupt)
}

func (e *events) interrupt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leg != nil {
		e.leg.Interrupt()
	}
}

// close lets go of the leg and tells whether the stream was to end.
func (e *events) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leg = nil
	return e.ending.Load()
}

// AtHand tells whether a Read would find something without waiting.
func (e *events) AtHand() bool { return e.src.AtHand() }

func (e *events) Read(p []byte) (int, error) {
	e.idle.Store(e.whole)
	if e.whole && e.ending.Load() {
		return 0, io.EOF
	}
	n, err := e.src.Read(p)
	e.idle.Store(false)
	e.follow(p[:n])
	if err != nil && err != io.EOF && n == 0 && e.whole && e.ending.Load() {
		err = io.EOF
	}
	return n, err
}

// follow notes whether b ends with an event: an empty line, whatever its line ends are.
func (e *events) follow(b []byte) {
	for _, c := range b[max(0, len(b)-8):] {
		if c != '\r' {
			e.last[0], e.last[1] = e.last[1], c
		}
	}
	if len(b) > 0 {
		e.whole = e.last == [2]byte{'\n', '\n'}
	}
}
