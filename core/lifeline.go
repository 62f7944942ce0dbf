package core

import (
	"errors"
	"sync"
)

// ErrDrained is why an exchange was cut that was not done when the time for its end was over.
var ErrDrained = errors.New("cut by the gateway, which shut down before the exchange was done")

// Cutter is something that a departed client no longer needs: Cut ends its pending I/O at once. It is called at most once for
// each Hold, from any goroutine.
type Cutter interface{ Cut() }

// Lifeline joins the client's end of an exchange to whatever works for it. The side that notices that the client has left calls
// Break; the side that works holds its connection there while it may be cut. Safe for concurrent use.
type Lifeline struct {
	mu     sync.Mutex
	broken bool
	why    error
	held   Cutter
	watch  Cutter
}

// Hold registers what Break shall cut. It tells false, and registers nothing, when the client has left already.
func (l *Lifeline) Hold(c Cutter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return false
	}
	l.held = c
	return true
}

// Release takes the registration back and tells whether it came in time: false means that c was, or will have been, cut.
func (l *Lifeline) Release() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
	return !l.broken
}

// Watch registers what Break shall cut beside what is held: a filter may wait for somebody while the upstream's answer is held. It
// tells false, and registers nothing, when the client has left already.
func (l *Lifeline) Watch(c Cutter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return false
	}
	l.watch = c
	return true
}

// Unwatch takes the registration of Watch back and tells whether it came in time.
func (l *Lifeline) Unwatch() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = nil
	return !l.broken
}

// Break says that the client has left and cuts what is held.
func (l *Lifeline) Break() { l.BreakFor(nil) }

// BreakFor is Break where it was not the client that ended its connection; why tells what it was, nil the client.
func (l *Lifeline) BreakFor(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return
	}
	for _, c := range [...]Cutter{l.held, l.watch} {
		if c != nil {
			c.Cut()
		}
	}
	l.broken, l.why = true, why
}

// Why tells what ended the client's connection; nil when the client did, or nobody yet.
func (l *Lifeline) Why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Broken tells whether the client has left.
func (l *Lifeline) Broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func (l *Lifeline) reset() {
	l.mu.Lock()
	l.broken, l.why, l.held, l.watch = false, nil, nil, nil
	l.mu.Unlock()
}
