package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/upstream"
)

// malformed is an answer that is no HTTP.
type malformed struct{ err error }

func (m *malformed) Error() string { return "malformed answer: " + m.err.Error() }
func (m *malformed) Unwrap() error { return m.err }

// fault gives an error the status that it deserves: 502 when no usable answer came, 504 when none came in time, 503 when the gateway would
// not ask, the client's own fault where it is the client's.
func (l *Leg) fault(err error) *core.Error {
	if cause := l.upload.fault(); cause != nil {
		return BodyFault(cause)
	}
	s := err.(*step)
	where := "upstream " + l.up.Name()
	if l.attempt.Endpoint != nil {
		where = l.attempt.Endpoint.String()
	}
	cause := fmt.Errorf("%s: %w", where, s.err)
	switch {
	case errors.Is(err, upstream.ErrBreakerOpen): // the log has been told when it opened
		return core.Fail(503, "upstream is failing, try again later", nil)
	case s.phase == choosing:
		return core.Fail(503, "no upstream is ready", cause)
	case errors.Is(err, upstream.ErrClientGone):
		return core.Fail(core.StatusClientGone, "client left", cause)
	case errors.Is(err, upstream.ErrPoolFull):
		return core.Fail(503, "upstream is busy", cause)
	case errors.Is(err, upstream.ErrShort):
		return core.Fail(503, "gateway is busy", cause)
	case l.refused: // nothing was done, and whoever asks again does nothing twice
		return core.Fail(503, "upstream did not take the request", cause)
	case s.phase == connecting:
		return core.Fail(502, "upstream cannot be reached", cause)
	case errors.Is(err, http1.ErrTimeout), l.upload.stalled():
		return core.Fail(504, "upstream did not answer in time", cause)
	case errors.As(err, new(*malformed)), errors.As(err, new(*core.Error)):
		return core.Fail(502, "upstream sent a malformed answer", cause)
	}
	return core.Fail(502, "upstream closed the connection", cause)
}

// BodyFault is the answer to a request whose body could not be read to its end, whoever read it.
func BodyFault(err error) *core.Error {
	if fault, ok := errors.AsType[*core.Error](err); ok {
		return fault
	}
	switch {
	case errors.Is(err, core.ErrBodyTooLarge):
		return &core.Error{Status: 413, Public: "request body too large", Cause: err, Close: true}
	case errors.Is(err, http1.ErrTimeout):
		return &core.Error{Status: 408, Public: "request body took too long", Cause: err, Close: true}
	}
	return &core.Error{Status: core.StatusClientGone, Public: "client left", Cause: err, Close: true}
}

func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}
