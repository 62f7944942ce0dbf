package limit

import (
	"sync"
	"time"
)

// question is what one caller asks of the script about one key: of one limiter, or of several that are joined.
type question struct {
	mode string
	ops  []*operation
	keys []string // in Redis; one for each operation
	cost int64
	need int64 // what a lease must bring at least

	decisions []Decision
	got       int64 // what a lease brought
	err       error

	answered chan struct{}
	patience *time.Timer
	givenUp  bool // nobody waits for it any more; guarded by the coalescer's mutex
}

var questions = sync.Pool{New: func() any {
	q := &question{answered: make(chan struct{}, 1), patience: time.NewTimer(time.Hour)}
	q.patience.Stop()
	return q
}}

// newQuestion makes a question about nothing yet.
func newQuestion(mode string, cost int64) *question {
	q := questions.Get().(*question)
	q.mode, q.cost, q.need, q.got, q.err = mode, cost, 0, 0, nil
	q.ops, q.keys, q.decisions = q.ops[:0], q.keys[:0], q.decisions[:0]
	return q
}

// about adds a limiter to those that are asked.
func (q *question) about(op *operation, key string) *question {
	q.ops, q.keys = append(q.ops, op), append(q.keys, key)
	return q
}

// free gives back a question that is answered and not looked at any more.
func (q *question) free() { questions.Put(q) }

// answer takes what the script says of the question: the first numbers, four for each of its limiters.
func (q *question) answer(numbers []int64) {
	for i, op := range q.ops {
		n := numbers[4*i : 4*i+4]
		q.decisions, q.got = append(q.decisions, op.decision(n)), n[0]
	}
}

// decision reads granted, what remains, microseconds until it fits (below 0: never), microseconds until it is as good as new.
func (op *operation) decision(n []int64) Decision {
	d := Decision{OK: n[0] > 0, Limit: op.limit, Remaining: n[1], RetryAfter: time.Duration(n[2]) * time.Microsecond, Window: op.window,
		owed: n[3] * int64(time.Microsecond), pace: 1}
	if n[2] < 0 {
		d.RetryAfter = Never
	}
	if op.calendar != nil {
		span := op.calendar.current(op.clock())
		d.Window = span.end.Sub(span.begin)
	}
	return d
}
