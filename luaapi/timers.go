package luaapi

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// Timers runs the timers of the pipeline that is live. It is made once for the process; a pipeline that goes live takes the place of the
// one before. It is safe for concurrent use.
type Timers struct {
	mu      sync.Mutex
	wanted  []*timer
	log     *slog.Logger
	counts  map[string]*TimerCounts // by filter
	changed chan struct{}           // has room for one
}

// TimerCounts are the runs of a filter's timers.
type TimerCounts struct {
	Succeeded, Failed atomic.Uint64
	Skipped           atomic.Uint64 // that had to be left out because the run before took too long
}

// NewTimers makes a set of timers in which none runs.
func NewTimers(log *slog.Logger) *Timers {
	return &Timers{log: log, changed: make(chan struct{}, 1)}
}

// Run runs timers until ctx ends. It returns when the last of them has stopped.
func (t *Timers) Run(ctx context.Context) {
	var all []*running
	for ctx.Err() == nil {
		all = t.next(all)
		turn, stop := context.WithCancel(ctx)
		var wait sync.WaitGroup
		for _, r := range all {
			wait.Go(func() { r.loop(turn) })
		}
		select {
		case <-t.changed:
		case <-ctx.Done():
		}
		stop()
		wait.Wait()
	}
}

// Each calls do with every filter that has timers.
func (t *Timers) Each(do func(filter string, counts *TimerCounts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for filter, counts := range t.counts {
		do(filter, counts)
	}
}

// replace lets these timers run, and no others. It does not wait.
func (t *Timers) replace(timers []*timer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[string]*TimerCounts{}
	for _, tm := range timers {
		name := tm.settings.filter.name
		if counts[name] == nil {
			counts[name] = t.counts[name]
		}
		if counts[name] == nil {
			counts[name] = new(TimerCounts)
		}
	}
	t.wanted, t.counts = timers, counts
	select {
	case t.changed <- struct{}{}:
	default: // Run has not seen the last change yet
	}
}

// running is a timer with its rhythm.
type running struct {
	*timer
	counts *TimerCounts
	log    *slog.Logger
	next   core.Instant // when it is to run

	failing  string       // the error of the last run
	reported core.Instant // when it was logged
}

// next prepares the wanted timers. Those that go on as they were keep their rhythm.
func (t *Timers) next(before []*running) []*running {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := core.Now()
	list := make([]*running, len(t.wanted))
	for i, tm := range t.wanted {
		list[i] = &running{timer: tm, counts: t.counts[tm.settings.filter.name], log: t.log, next: now}
		for _, old := range before {
			if tm.sameAs(old.timer) {
				list[i].next, list[i].failing, list[i].reported = old.next, old.failing, old.reported
			}
		}
	}
	return list
}

func (r *running) loop(ctx context.Context) {
	for r.sleep(ctx) {
		began := core.Now()
		err := r.run(ctx)
		if err != nil && ctx.Err() != nil {
			return // it was cut: it runs again at once, if it goes on at all
		}
		r.report(err)
		r.next = began.Add(r.interval)
		if now := core.Now(); r.next < now {
			missed := now.Sub(r.next)/r.interval + 1
			r.counts.Skipped.Add(uint64(missed))
			r.next = r.next.Add(missed * r.interval)
		}
	}
}

// sleep waits until the timer is to run; false when it shall not.
func (r *running) sleep(ctx context.Context) bool {
	wait := time.NewTimer(r.next.Sub(core.Now()))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return ctx.Err() == nil
	}
}

// reportAgain is how often an error that stays the same is logged.
const reportAgain = time.Minute

// report counts a run, and logs where it failed: once, as long as the error stays the same.
func (r *running) report(err error) {
	ctx := context.Background()
	if err == nil {
		r.counts.Succeeded.Add(1)
		if r.failing != "" {
			r.failing = ""
			r.log.LogAttrs(ctx, slog.LevelInfo, "timer works again", r.attrs()...)
		}
		return
	}
	r.counts.Failed.Add(1)
	text, now := r.failure(err).Error(), core.Now()
	if text == r.failing && now.Sub(r.reported) < reportAgain {
		return
	}
	r.failing, r.reported = text, now
	r.log.LogAttrs(ctx, slog.LevelError, "timer failed", append(r.attrs(), slog.String("error", text))...)
}
