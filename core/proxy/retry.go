package proxy

import (
	"errors"
	"io"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

// prepare reads the body of a request that may be repeated because of a status. One that does not fit into the route's body_buffer streams, and
// its answer stands whatever it is; so does that of an endpoint which a script has chosen.
func (l *Leg) prepare() error {
	if l.x.Request.Upgrade || l.pinned != nil || !l.up.MayRetry(l.x.Request.Method) {
		return nil
	}
	body := &l.x.Request.Body
	if _, l.retrying = body.Whole(); l.retrying {
		return nil
	}
	_, err := body.Buffer(l.x.Route.BodyBuffer)
	l.retrying = err == nil
	if broken := body.Err(); broken != nil && broken != io.EOF {
		return BodyFault(broken)
	}
	l.hard = core.Now().Add(l.limits.Total) // the client's time is not the upstream's
	return nil
}

// again tells whether a status is not passed on, but the request made once more: when the configuration says so, and there are time and budget
// left.
func (l *Leg) again(status int) bool {
	if !l.retrying || !l.up.Retries(status, l.retried) || core.Now() >= l.hard || !l.up.TakeRetry() {
		return false
	}
	l.retried++
	return true
}

// againAfter is again for the status that stands for an answer which did not come.
func (l *Leg) againAfter(err error, status int) bool {
	switch {
	case err.(*step).phase == choosing, errors.Is(err, upstream.ErrPoolFull), errors.Is(err, upstream.ErrShort), errors.Is(err, errDeadline):
		return false
	}
	return l.again(status)
}

// drop ends a try whose answer nobody gets.
func (l *Leg) drop() {
	l.tried = append(l.tried, l.attempt.Endpoint)
	l.trying = false
	if l.round == nil {
		l.skim()
	}
	l.upload.stop(l)
	stays := l.x.Lifeline.Release()
	if l.round != nil {
		l.round.end()
		l.round = nil
	} else {
		l.giveBack(stays)
		l.held.Release()
		l.conn = nil
	}
	l.attempt.Leave()
	l.x.Response.Body.Reset()
	l.x.Times.Sent, l.x.Times.FirstByte = 0, 0
}

// skim reads what has come of an answer: a connection that is at its end can serve again.
func (l *Leg) skim() {
	var junk [4096]byte
	for b := &l.conn.Body; !b.Ended() && !b.Broken() && b.AtHand(); {
		_, _ = b.Read(junk[:])
	}
}
