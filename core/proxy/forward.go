// Package proxy is the leg to the endpoint: it takes an exchange whose request stages are done, finds a connection, sends the request,
// and brings the head of the answer back. It answers one question: what did the upstream say?
//
// [Forward] gives a [Leg], which holds the connection while the answer's body streams from it; Finish ends the leg. Everything that can go
// wrong comes back as a *core.Error with the status that SPEC's table of faults gives it.
package proxy

import (
	"errors"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/upstream"
)

// maxTries bounds the endpoints that one request is offered to.
const maxTries = 3

// maxHead bounds the head of an upstream's answer, in bytes.
const maxHead = upstream.AnswerHead

// Leg is one exchange's way to its upstream, from the choice of an endpoint to the last byte of the answer. Legs are pooled: after
// Release it belongs to nobody.
type Leg struct {
	x       *core.Exchange
	client  core.Client
	up      *upstream.Upstream
	limits  core.Limits
	hard    core.Instant   // when the time for the head is over
	pinned  *core.Endpoint // a script's choice
	kept    *core.Endpoint // where the client's cookie says that it was
	key     string         // for balancers that hash
	attempt upstream.Attempt
	conn    *upstream.Conn // of HTTP/1.1
	round   *round         // of HTTP/2
	before  int64          // bytes that conn had read before this request
	upload  upload
	framing http1.Framing
	held    http1.Held // after Finish: where the fields of the answer lie
	target  [512]byte

	switched bool // the connection has left the pool
	upgrade  bool // a place among the upstream's upgrades is held
	trying   bool // a try holds what settle gives back
	finished bool
	interims int  // answers of 1xx of this try
	lapsed   bool // the try that failed did so because its connection, which had rested, was found closed
	refused  bool // or because the endpoint, which speaks HTTP/2, would not look at the request

	retrying bool             // a status may mean that the request, whose body is whole, is made once more
	retried  int              // how often it was
	tried    []*core.Endpoint // those that failed it, the last one last
}

var legs = sync.Pool{New: func() any { return new(Leg) }}

// Forward brings x to an endpoint of up and fills x.Response with the head of the answer; its body streams from the leg. On an error
// there is no leg left to finish.
func Forward(x *core.Exchange, up *upstream.Upstream, client core.Client) (*Leg, error) {
	l := legs.Get().(*Leg)
	l.x, l.client, l.up, l.pinned = x, client, up, x.Endpoint
	l.limits = x.Route.Limits.Over(up.Limits())
	l.hard = x.Times.Filtered.Add(l.limits.Total)
	l.kept, l.key = up.Kept(x), up.Key(x)
	whole := false
	defer func() {
		if !whole {
			l.abort()
		}
	}()
	err := l.enter()
	if err == nil {
		err = l.prepare()
	}
	if err == nil {
		err = l.tries()
	}
	whole = true
	if err != nil {
		l.free()
		return nil, err
	}
	x.Response.Source = core.FromUpstream
	l.keep()
	return l, nil
}

// enter takes a place for an upgrade that was asked for; free gives it back.
func (l *Leg) enter() error {
	if !l.x.Request.Upgrade {
		return nil
	}
	if l.upgrade = l.up.EnterUpgrade(); !l.upgrade {
		return core.Fail(503, "upstream has as many open upgrades as it may", nil)
	}
	return nil
}

// abort gives back what a try holds that a panic has ended.
func (l *Leg) abort() {
	if l.trying {
		l.settle(&step{connecting, upstream.ErrClientGone})
	}
	l.free()
}

// tries offers the request to one endpoint after another, as long as that is safe and wanted: nothing may ever be done twice.
func (l *Leg) tries() error {
	for failures := 0; ; l.anew() {
		err := l.try()
		if err == nil {
			if !l.again(l.x.Response.Status) {
				return nil
			}
			l.drop()
			continue
		}
		safe := l.settle(err)
		if l.x.Lifeline.Broken() {
			return core.Fail(core.StatusClientGone, "client left", err)
		}
		if !l.lapsed {
			l.tried = append(l.tried, l.attempt.Endpoint)
		}
		if !l.lapsed || l.conn == nil { // how many connections can lapse is bounded by the pool of those that are not shared
			failures++
		}
		if safe && failures < maxTries && core.Now() < l.hard {
			continue
		}
		if fault := l.fault(err); !l.againAfter(err, fault.Status) {
			return fault
		}
	}
}

// anew forgets what a try has left in the response.
func (l *Leg) anew() {
	l.x.Response.Header.Reset()
	l.x.Response.Status = 0
	l.interims = 0
}

func (l *Leg) try() (err error) {
	l.attempt, l.trying = upstream.Attempt{}, true
	if l.conn = nil; l.pinned != nil {
		l.attempt, err = l.up.BeginAt(l.pinned)
	} else {
		l.attempt, err = l.up.BeginKept(l.kept, l.key, l.tried)
	}
	if err != nil {
		return &step{choosing, err}
	}
	l.x.Endpoint = l.attempt.Endpoint
	left := l.hard.Sub(core.Now())
	if s := l.up.Streams(l.attempt.Endpoint); s != nil {
		return l.tryHTTP2(s, left)
	}
	if l.conn, err = l.connect(left); err != nil {
		return &step{connecting, err}
	}
	l.x.Times.Connected = core.Now()
	l.before = l.conn.Read
	if !l.x.Lifeline.Hold(l.conn) {
		l.up.Pool(l.attempt.Endpoint).Put(l.conn)
		l.conn = nil
		return &step{connecting, upstream.ErrClientGone}
	}
	if err := l.send(); err != nil {
		return &step{sending, err}
	}
	if err := l.receive(); err != nil {
		return &step{receiving, err}
	}
	return nil
}

// phase is how far a try came.
type phase uint8

const (
	choosing phase = iota
	connecting
	sending
	receiving
)

// step is an error with the phase that it happened in.
type step struct {
	phase phase
	err   error
}

func (s *step) Error() string { return s.err.Error() }
func (s *step) Unwrap() error { return s.err }

// settle gives back what a failed try held, tells the endpoint's health about it, and says whether another try is safe.
func (l *Leg) settle(err error) (again bool) {
	s := err.(*step)
	l.trying = false
	if s.phase >= sending {
		l.weigh()
	}
	defer l.attempt.Leave()
	l.upload.stop(l)
	l.lapsed = l.stale(s)
	l.resume()
	l.x.Lifeline.Release()
	l.refused = false
	if l.round != nil {
		l.refused = l.round.unseen(s.err)
		l.round.end()
		l.round = nil
	}
	if l.conn != nil {
		l.up.Pool(l.attempt.Endpoint).Discard(l.conn)
	}
	switch {
	case s.phase == choosing:
		return false
	case l.upload.fault() != nil || l.x.Lifeline.Broken() || errors.Is(err, upstream.ErrPoolFull) || errors.Is(err, upstream.ErrClientGone),
		errors.Is(err, upstream.ErrNoTime), errors.Is(err, upstream.ErrShort), errors.Is(err, errDeadline):
		l.attempt.Ended()
		return false
	case l.refused:
		l.attempt.Ended()
		return l.x.Request.Body.Rewind()
	case s.phase == connecting:
		l.attempt.Failed()
		return !timedOut(err) && l.pinned == nil && len(l.up.Endpoints()) > 1
	case l.lapsed:
		l.attempt.Ended()
		return l.repeatable()
	}
	l.attempt.Failed()
	return false
}

// resume makes the request's body readable again when nothing of it had come before its reading was interrupted, because the connection that it
// was to go to was found closed.
func (l *Leg) resume() {
	body := &l.x.Request.Body
	if l.upload.interrupted && l.lapsed && body.Taken() == 0 && l.client.ResumeBody() {
		body.Resume()
	}
}

// stale tells whether a connection that had rested was found closed before anything of an answer came. That says nothing about the
// endpoint: it closed the connection while it was idle (RFC 9112 section 9.3.1).
func (l *Leg) stale(s *step) bool {
	if l.round != nil {
		return s.phase >= sending && l.round.stale(s.err)
	}
	return s.phase >= sending && l.conn != nil && l.conn.Reused && l.conn.Read == l.before && !errors.Is(s.err, http1.ErrTimeout)
}

// repeatable tells whether the request may go out once more: its method allows it (RFC 9110 section 9.2.2) and its body is still whole.
func (l *Leg) repeatable() bool {
	return l.x.Request.Body.Rewind() && upstream.Idempotent(l.x.Request.Method)
}

// Finish ends the exchange with the upstream once the answer has gone to the client, or never will. The fields of the answer stay valid
// until Release.
func (l *Leg) Finish() {
	x := l.x
	l.finished = true
	l.upload.stop(l)
	stays := x.Lifeline.Release()
	if l.round != nil {
		l.round.end()
	} else {
		l.giveBack(stays)
	}
	l.attempt.Leave()
}

// giveBack parts with a connection whose answer has been read, as far as it will be. What the answer's fields lie in is held from then on.
func (l *Leg) giveBack(stays bool) {
	pool := l.up.Pool(l.attempt.Endpoint)
	fit := stays && l.conn.Body.Ended() && l.upload.clean() && !l.framing.Close && l.conn.Buffered() == 0
	l.held = l.conn.Detach()
	switch {
	case l.switched:
		l.conn.Close()
	case fit:
		pool.Put(l.conn)
	default:
		pool.Discard(l.conn)
	}
}

// Abandon ends the leg wherever it is. The answer is not read any further.
func (l *Leg) Abandon() {
	if !l.finished {
		l.framing.Close = true
		l.Finish()
	}
	l.Release()
}

// Release lets go of the leg after Finish, and of the memory that the answer's fields lie in.
func (l *Leg) Release() {
	l.held.Release()
	l.free()
}

func (l *Leg) free() {
	if l.upgrade {
		l.up.LeaveUpgrade()
	}
	l.attempt.Leave()
	*l = Leg{}
	legs.Put(l)
}

// headTime is the time that is left for an answer's head.
func (l *Leg) headTime(now core.Instant) time.Duration {
	return min(l.limits.FirstByte, l.hard.Sub(now))
}
