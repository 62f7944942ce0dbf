package proxy

import (
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// watch calls somebody when an operation takes longer than span, or goes on beyond hard. It costs a lock for each operation.
type watch struct {
	mu    sync.Mutex
	span  time.Duration
	hard  core.Instant // 0: no bound
	since core.Instant // of the operation under way, 0: none is
	late  func()
	timer *time.Timer
}

func (w *watch) begin(span time.Duration, hard core.Instant, late func()) {
	w.span, w.hard, w.late = span, hard, late
}

func (w *watch) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = core.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.left(w.since), w.look)
	}
}

func (w *watch) leave() {
	w.mu.Lock()
	w.since = 0
	w.mu.Unlock()
}

// left is the time that the operation has from now on, or how long nobody needs to look.
func (w *watch) left(now core.Instant) time.Duration {
	left := w.span
	if w.since != 0 {
		left -= now.Sub(w.since)
	}
	if w.hard != 0 {
		left = min(left, w.hard.Sub(now))
	}
	return left
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late == nil {
		return
	}
	if left := w.left(core.Now()); left > 0 {
		w.timer.Reset(left)
		return
	}
	w.late()
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = nil
	if w.timer != nil {
		w.timer.Stop()
	}
}
