package upstream

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// BreakerOptions rule the circuit breaker of an upstream: when it is no longer asked at all, because it fails as a whole. The same failures
// count as for the health of endpoints.
type BreakerOptions struct {
	Failures int           // in a row that open it; 0: any number
	Errors   int           // failures in a hundred tries of the window that open it; 0: any
	Window   time.Duration // over which tries are counted
	Minimum  int           // tries within the window before Errors counts
	Open     time.Duration // how long it stays open before it is tried again, and how long tries that last keep others from it
	Probes   int           // tries at once then; one that succeeds closes it
}

func (o *BreakerOptions) on() bool { return o.Failures > 0 || o.Errors > 0 }

// ErrBreakerOpen means that the upstream is not asked for a while, because it has failed too often.
var ErrBreakerOpen = errors.New("the circuit breaker is open")

// BreakerState is whether an upstream is asked.
type BreakerState uint8

// The states of a circuit breaker (M. Nygard, Release It!, 2007, chapter 5.2).
const (
	BreakerClosed   BreakerState = iota // it is
	BreakerHalfOpen                     // a few tries find out
	BreakerOpen                         // it is not
)

func (s BreakerState) String() string { return [...]string{"closed", "half-open", "open"}[s] }

// breaker counts what became of tries. It is the same for all generations of an upstream.
type breaker struct {
	until  atomic.Int64  // core.Instant from which tries are let through; 0 is closed
	opened atomic.Uint64 // how often it was opened: a try that began before tells nothing any more
	probes atomic.Int32  // under way
	tried  atomic.Int64  // core.Instant at which the latest of them was let through
	row    atomic.Int32  // failures since the last success
	window [windowParts]windowPart

	mu sync.Mutex // held where the state changes, and where a probe is let through
}

// windowParts is how many parts the window has: it moves on by one of them.
const windowParts = 10

type windowPart struct {
	number            atomic.Uint64 // of the part of time that the counts are of; 0: of none
	succeeded, failed atomic.Int32
}

// pass is what a breaker gives a try on its way.
type pass struct {
	opened uint64
	probe  bool
}

// probing tells whether p's try still decides by itself: one that another has overtaken, which closed the breaker, is a try like all others.
func (b *breaker) probing(p pass) bool { return p.probe && b.until.Load() != 0 }

func (b *breaker) state(now core.Instant) BreakerState {
	switch until := core.Instant(b.until.Load()); {
	case until == 0:
		return BreakerClosed
	case now >= until:
		return BreakerHalfOpen
	}
	return BreakerOpen
}

// admit lets a try through, or tells ErrBreakerOpen.
func (b *breaker) admit(o *BreakerOptions) (pass, error) {
	p := pass{opened: b.opened.Load()}
	if b.until.Load() == 0 {
		return p, nil
	}
	now := core.Now()
	if b.state(now) == BreakerOpen {
		return p, ErrBreakerOpen
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state(now) { // another may have been faster
	case BreakerClosed:
		return p, nil
	case BreakerHalfOpen:
		if b.room(o, now) {
			b.probes.Add(1)
			b.tried.Store(int64(now))
			p.probe = true
			return p, nil
		}
	}
	return p, ErrBreakerOpen
}

// room tells whether one more probe is let through. One that lasts, such as an upload whose client is slow, does not keep others from finding out: one
// more is let through each time that Open has passed.
func (b *breaker) room(o *BreakerOptions, now core.Instant) bool {
	return b.probes.Load() < int32(o.Probes) || now.Sub(core.Instant(b.tried.Load())) >= o.Open
}

// admits tells whether a try would be let through now.
func (b *breaker) admits(o *BreakerOptions) bool {
	now := core.Now()
	switch b.state(now) {
	case BreakerClosed:
		return true
	case BreakerHalfOpen:
		return b.room(o, now)
	}
	return false
}

// ended takes in a try that told nothing.
func (b *breaker) ended(p pass) {
	if p.probe {
		b.probes.Add(-1)
	}
}

// succeeded takes in a try that was answered well, and tells whether that closed the breaker.
func (b *breaker) succeeded(o *BreakerOptions, p pass) (closed bool) {
	if b.ended(p); p.opened != b.opened.Load() {
		return false
	}
	if b.probing(p) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if p.opened != b.opened.Load() || b.until.Load() == 0 {
			return false
		}
		b.forget()
		b.until.Store(0)
		return true
	}
	if b.row.Load() != 0 {
		b.row.Store(0)
	}
	if o.Errors > 0 {
		b.part(o, core.Now()).succeeded.Add(1)
	}
	return false
}

// failed takes in a try that speaks against the upstream, and tells why that opened the breaker, "" when it did not.
func (b *breaker) failed(o *BreakerOptions, p pass) (why string) {
	if b.ended(p); p.opened != b.opened.Load() {
		return ""
	}
	now, probing := core.Now(), b.probing(p)
	switch row := b.row.Add(1); {
	case probing:
		why = "it failed again when it was tried"
	case o.Failures > 0 && row >= int32(o.Failures):
		why = fmt.Sprintf("%d failures in a row", row)
	case o.Errors > 0:
		b.part(o, now).failed.Add(1)
		tries, failures := b.sum(o, now)
		if tries < o.Minimum || failures*100 < o.Errors*tries {
			return ""
		}
		why = fmt.Sprintf("%d of %d requests within %s failed", failures, tries, o.Window)
	default:
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.opened != b.opened.Load() || probing != (b.until.Load() != 0) { // another was faster
		return ""
	}
	b.forget()
	b.until.Store(int64(now.Add(o.Open)))
	b.opened.Add(1)
	return why
}

// forget begins the counting anew.
func (b *breaker) forget() {
	b.row.Store(0)
	for i := range b.window {
		b.window[i].number.Store(0)
	}
}

// part is where a try that ends now is counted. Two that begin a part at once may lose one count.
func (b *breaker) part(o *BreakerOptions, now core.Instant) *windowPart {
	number := partNumber(o, now)
	p := &b.window[number%windowParts]
	if old := p.number.Load(); old != number && p.number.CompareAndSwap(old, number) {
		p.succeeded.Store(0)
		p.failed.Store(0)
	}
	return p
}

// sum adds up the window that ends now.
func (b *breaker) sum(o *BreakerOptions, now core.Instant) (tries, failures int) {
	last := partNumber(o, now)
	for i := range b.window {
		if p := &b.window[i]; last-p.number.Load() < windowParts {
			failures += int(p.failed.Load())
			tries += int(p.succeeded.Load())
		}
	}
	return tries + failures, failures
}

// partNumber counts parts of the window since the process began, from windowParts on, so that 0 is none of the last.
func partNumber(o *BreakerOptions, now core.Instant) uint64 {
	return uint64(int64(now)/max(int64(o.Window)/windowParts, 1)) + windowParts
}

// Breaker is the state of the upstream's circuit breaker, and how often it was opened. ok is false when it has none.
func (u *Upstream) Breaker() (state BreakerState, opened uint64, ok bool) {
	if !u.opts.Breaker.on() {
		return BreakerClosed, 0, false
	}
	return u.breaker.state(core.Now()), u.breaker.opened.Load(), true
}

// breakerOpen tells whether nobody is asked now.
func (u *Upstream) breakerOpen() bool {
	return u.opts.Breaker.on() && u.breaker.state(core.Now()) == BreakerOpen
}
