package auth_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/moongate/moongate/core/auth"
)

// worker is something that runs in the background.
type worker struct {
	started, running, ended atomic.Bool
	ready                   error
}

func (w *worker) Start() { w.started.Store(true) }
func (w *worker) Run(ctx context.Context) {
	w.running.Store(true)
	<-ctx.Done()
	w.ended.Store(true)
}
func (w *worker) Ready() error { return w.ready }

func get(t *testing.T, p *auth.Plan, id byte, w *worker) *worker {
	t.Helper()
	kept, ok, err := p.Get(auth.ID{id}, func() (any, error) { return w, nil })
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return kept.(*worker)
}

func TestRegistryKeepsWhatIsStillNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r auth.Registry
		a, b, c := &worker{}, &worker{}, &worker{ready: errors.New("no keys yet")}
		p := r.Plan()
		get(t, p, 1, a)
		if get(t, p, 1, b) != a {
			t.Error("one id, two verifiers")
		}
		get(t, p, 2, b)
		if a.started.Load() {
			t.Error("started before the commit")
		}
		p.Commit()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
		synctest.Wait()
		if !a.running.Load() || !b.running.Load() || r.Ready() != nil {
			t.Error("not running")
		}
		next := r.Plan()
		if get(t, next, 1, c) != a {
			t.Error("the next generation gets another")
		}
		get(t, next, 3, c)
		abandoned := r.Plan()
		get(t, abandoned, 4, &worker{})
		if _, _, err := abandoned.Get(auth.ID{5}, func() (any, error) { return nil, errors.New("impossible") }); err == nil {
			t.Error("an error is lost")
		}
		next.Commit()
		synctest.Wait()
		if a.ended.Load() || !b.ended.Load() || !c.running.Load() {
			t.Errorf("a ended %v, b ended %v, c runs %v", a.ended.Load(), b.ended.Load(), c.running.Load())
		}
		if err := r.Ready(); err == nil || err.Error() != "no keys yet" {
			t.Errorf("ready: %v", err)
		}
		if _, ok, err := next.Get(auth.ID{9}, func() (any, error) { return &worker{}, nil }); ok || err != nil {
			t.Error("a plan that was committed makes more")
		}
		cancel()
		<-ended
		if !a.ended.Load() || !c.ended.Load() {
			t.Error("still running after the end")
		}
	})
}
