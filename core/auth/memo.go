package auth

import (
	"context"
	"sync"
	"time"
)

// outcome is what was found out about a proof: who it is, or why not.
type outcome struct {
	identity *Identity
	refusal  *Refusal
	proof    any       // what the verifier wants to see again
	until    time.Time // when it counts no longer
}

func (o outcome) result() (outcome, error) {
	if o.refusal != nil {
		return outcome{}, o.refusal
	}
	return o, nil
}

// memo remembers what was found out, for a while and up to a number of proofs, and finds out once for all who ask for the same at once.
// Proofs are known by a keyed digest: they cannot be read from it.
type memo struct {
	max     int
	timeout time.Duration // of finding out
	clock   func() time.Time

	mu    sync.Mutex
	known map[ID]outcome
	calls map[ID]*call
}

// call is a finding out that runs.
type call struct {
	done   chan struct{}
	result outcome
}

func newMemo(most int, timeout time.Duration, clock func() time.Time) *memo {
	if clock == nil {
		clock = time.Now
	}
	return &memo{max: most, timeout: timeout, clock: clock, known: map[ID]outcome{}, calls: map[ID]*call{}}
}

// find gives what is known, or finds out within w. An outcome that do gives is remembered until its moment; the zero moment forgets it.
func (m *memo) find(w Waiter, id ID, do func(ctx context.Context) outcome) (outcome, error) {
	m.mu.Lock()
	if o, ok := m.known[id]; ok {
		if m.clock().Before(o.until) {
			m.mu.Unlock()
			return o.result()
		}
		delete(m.known, id)
	}
	c, joined := m.calls[id]
	if !joined {
		c = &call{done: make(chan struct{}), result: outcome{refusal: interrupted}}
		m.calls[id] = c
	}
	m.mu.Unlock()
	err := w.Wait(func(ctx context.Context) {
		if joined {
			m.join(ctx, c)
			return
		}
		defer m.finish(id, c)
		inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.timeout) // others wait for it too
		defer cancel()
		c.result = do(inner)
	})
	if err != nil {
		if !joined {
			c.result = outcome{refusal: &Refusal{kind: ErrUnavailable, reason: err.Error()}}
			m.finish(id, c)
		}
		return outcome{}, unavailable(err.Error())
	}
	select {
	case <-c.done:
		return c.result.result()
	default:
		return outcome{}, interrupted
	}
}

var interrupted = &Refusal{kind: ErrUnavailable, reason: "gave up waiting for an answer"}

func (m *memo) join(ctx context.Context, c *call) {
	timer := time.NewTimer(m.timeout)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (m *memo) finish(id ID, c *call) {
	m.mu.Lock()
	delete(m.calls, id)
	if m.max > 0 && c.result.until.After(m.clock()) {
		for old := range m.known { // any will do
			if len(m.known) < m.max {
				break
			}
			delete(m.known, old)
		}
		m.known[id] = c.result
	}
	m.mu.Unlock()
	close(c.done)
}
