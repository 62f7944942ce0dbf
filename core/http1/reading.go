package http1

import (
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// reading is the time limits of a connection's reads. Setting a deadline costs more than reading the clock, so the deadline that the
// connection knows may lie before the limit that is wanted: when it passes too early, it is set again and the operation goes on.
// A limit is exact; what is lazy is the system behind it, which a busy connection asks once in a limit's time.
type reading struct {
	idle    time.Duration // what each read gets; 0: limit stands as it is
	hard    core.Instant  // no limit lies beyond this; 0: no bound
	limit   core.Instant  // what is wanted
	armed   core.Instant  // what the connection knows, 0 for nothing
	stopped atomic.Bool

	patience Patience    // with a peer that is a client
	fresh    bool        // nothing of the message has been waited for yet
	hasty    bool        // limit is where the patience ends
	eased    atomic.Bool // the patience has no end any more
}

// begin gives a read its limit and returns when it began, 0 when the limit stands. The error is that of a peer whose time is over.
func (t *reading) begin(set func(time.Time) error) (core.Instant, error) {
	if t.stopped.Load() {
		return 0, ErrTimeout
	}
	if t.idle == 0 {
		return 0, nil
	}
	now, d := core.Now(), t.idle
	if t.hasty = false; t.patience.Ends() && !t.eased.Load() {
		left := t.patience.Left()
		if left <= 0 {
			return now, t.patience.Slow()
		}
		if left < d {
			d, t.hasty = left, true
		}
	}
	t.within(now, d, set)
	if t.stopped.Load() {
		return now, ErrTimeout
	}
	return now, nil
}

// within asks for now + d.
func (t *reading) within(now core.Instant, d time.Duration, set func(time.Time) error) {
	t.limit = now.Add(d)
	if t.hard != 0 && t.limit > t.hard {
		t.limit = t.hard
	}
	if t.armed == 0 || t.armed > t.limit {
		t.arm(set)
	}
}

// missed is called when a read that began at an instant ran into the armed deadline. nil lets it go on: then its limit has not passed.
func (t *reading) missed(began core.Instant, set func(time.Time) error) error {
	if t.hasty && t.eased.Load() {
		t.hasty, t.limit = false, began.Add(t.idle)
	}
	switch {
	case t.stopped.Load():
		t.armed = 0
		return ErrTimeout
	case core.Now() < t.limit:
		if t.arm(set); t.stopped.Load() {
			return ErrTimeout
		}
		return nil
	case t.hasty:
		t.armed = 0
		return t.patience.Slow()
	}
	t.armed = 0
	return ErrTimeout
}

// took notes a read of n bytes. The wait for the first of a message is bounded like any other and not charged.
func (t *reading) took(began core.Instant, n int) {
	switch {
	case began == 0 || !t.patience.Ends():
	case t.fresh:
		t.fresh = false
		t.patience.Moved(n)
	case !t.eased.Load():
		t.patience.Took(began, n)
	}
}

func (t *reading) arm(set func(time.Time) error) {
	t.armed = t.limit
	_ = set(t.limit.Wall())
}
