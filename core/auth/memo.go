package auth

import (
	"context"
	"fmt"
	"runtime/debug"
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
	begun := joined
	defer func() {
		if !begun { // nobody finds out, whatever ended the wait
			m.finish(id, c)
		}
	}()
	err := w.Wait(func(ctx context.Context) {
		if !begun {
			begun = true
			go m.run(id, c, do)
		}
		m.join(ctx, c)
	})
	if err != nil {
		refused := &Refusal{kind: ErrUnavailable, reason: err.Error()}
		if !begun {
			c.result = outcome{refusal: refused}
		}
		return outcome{}, refused
	}
	select {
	case <-c.done:
		return c.result.result()
	default:
		return outcome{}, interrupted
	}
}

// run finds out, for as long as that may take at most: others wait for it too when whoever began it has left.
func (m *memo) run(id ID, c *call, do func(ctx context.Context) outcome) {
	defer m.finish(id, c)
	defer func() {
		if r := recover(); r != nil {
			c.result = outcome{refusal: &Refusal{kind: ErrUnavailable, reason: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	c.result = do(ctx)
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
