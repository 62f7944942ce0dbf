package http1

import (
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// timer is a time limit on one direction of a connection. Setting a deadline costs more than reading the clock, so the deadline that
// the connection knows may lie before the limit that is wanted: when it passes too early, it is set again and the operation goes on.
// A limit is exact; what is lazy is the system behind it, which a busy connection asks once in a limit's time.
type timer struct {
	idle    time.Duration // what each operation gets; 0: limit stands as it is
	hard    core.Instant  // no limit lies beyond this; 0: no bound
	limit   core.Instant  // what is wanted
	armed   core.Instant  // what the connection knows, 0 for nothing
	stopped atomic.Bool
}

// within asks for now + d.
func (t *timer) within(now core.Instant, d time.Duration, set func(time.Time) error) {
	t.limit = now.Add(d)
	if t.hard != 0 && t.limit > t.hard {
		t.limit = t.hard
	}
	if t.armed == 0 || t.armed > t.limit {
		t.arm(set)
	}
}

// again tells whether an operation that ran into the armed deadline may go on: then its limit has not passed.
func (t *timer) again(set func(time.Time) error) bool {
	if t.stopped.Load() || core.Now() >= t.limit {
		t.armed = 0
		return false
	}
	t.arm(set)
	return !t.stopped.Load()
}

func (t *timer) arm(set func(time.Time) error) {
	t.armed = t.limit
	_ = set(t.limit.Wall())
}
