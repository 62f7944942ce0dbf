package http1

import (
	"fmt"
	"time"

	"github.com/moongate/moongate/core"
)

// Pace is how fast a client has to be with a body that is asked of it and with an answer that is there for it. What counts is the time in
// which it keeps the gateway waiting: a stream that has nothing to say is never slow.
//
// A client may be late by Grace. Each byte that moves earns it the time that it should take, so that one that holds Rate never has to hurry;
// one that was faster may pause for three times Grace.
type Pace struct {
	Idle  time.Duration // for a single read or write to move on; 0: no bound, and no pace either
	Rate  int64         // bytes a second; 0: none is asked
	Grace time.Duration
}

// mostGraces bounds the time that a client can earn.
const mostGraces = 3

func (p *Pace) most() time.Duration { return mostGraces * p.Grace }

// earned is the time that n bytes are worth.
func (p *Pace) earned(n int64) time.Duration {
	if n >= p.enough() {
		return p.most()
	}
	return time.Duration(float64(n) / float64(p.Rate) * float64(time.Second))
}

// enough is the number of bytes that are worth all the time that can be earned.
func (p *Pace) enough() int64 {
	seconds := p.most() / time.Second
	return (int64(seconds)+1)*p.Rate + 1
}

// SlowError ends the reading of a body, or the writing of an answer, of a client that was slower than its pace. It is an ErrTimeout.
type SlowError struct{ Rate int64 } // bytes a second that were asked for

func (e *SlowError) Error() string { return fmt.Sprintf("slower than %d bytes a second", e.Rate) }
func (e *SlowError) Unwrap() error { return ErrTimeout }

// Patience is the time that one direction of a client's message may still keep the gateway waiting. The zero value has no end.
type Patience struct {
	pace  *Pace // nil: no end
	left  time.Duration
	moved int64 // bytes that have not been turned into time yet
}

// Begin starts a message; p is not changed while the message lasts. The pace does not matter where it asks for none.
func (p *Patience) Begin(pace *Pace) {
	if pace == nil || pace.Rate == 0 || pace.Idle == 0 {
		*p = Patience{}
		return
	}
	*p = Patience{pace: pace, left: pace.Grace}
}

// Ends tells whether there is an end to it.
func (p *Patience) Ends() bool { return p.pace != nil }

// Moved notes n bytes.
func (p *Patience) Moved(n int) { p.moved += int64(n) }

// Wait notes that the client kept the gateway waiting for d. The error is a *SlowError once that was too long in all.
func (p *Patience) Wait(d time.Duration) error {
	if p.pace == nil {
		return nil
	}
	p.left = min(p.left-d+p.pace.earned(p.moved), p.pace.most())
	if p.moved = 0; p.left <= 0 {
		return p.Slow()
	}
	return nil
}

// Left is how long the client may wait from now on.
func (p *Patience) Left() time.Duration {
	if p.moved > 0 {
		_ = p.Wait(0)
	}
	return p.left
}

// Slow is the error of a client whose time is over.
func (p *Patience) Slow() error { return &SlowError{p.pace.Rate} }

// Took notes a read, or a write, that began at an instant and has just moved n bytes. The clock is read only when those cannot have been
// worth what the client had left.
func (p *Patience) Took(began core.Instant, n int) {
	if p.pace == nil {
		return
	}
	p.Moved(n)
	if int64(n) < p.pace.enough() {
		_ = p.Wait(core.Now().Sub(began)) // the next one is told
	}
}
