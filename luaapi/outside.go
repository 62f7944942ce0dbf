package luaapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// What a script waits for outside: an answer over HTTP, Redis. While it waits, its VM counts against max_waiting and not against the
// stage's size, and the time is not Lua time.

// phaseOutside are the moments in which a script may wait.
const phaseOutside = phaseExchange | phaseTimer

var (
	errPatience   = errors.New("the request's time is over: its filters have waited as long as the route's total")
	errClientLeft = errors.New("the client has left")
)

// slowError is the cause with which the context of outside ends when its own limit has passed.
type slowError struct{ limit time.Duration }

func (e slowError) Error() string { return "timed out after " + e.limit.String() }

// outside runs do while the VM waits. The context of do ends when limit has passed (0: no limit of its own), when the client leaves, or
// when the filters of the exchange have waited as long, in all, as the route's total allows; context.Cause says which, in words for the
// script. do returns soon after that and never touches the Lua state. An error means that do did not run, and is for the script: nil,
// err. When the client has left, outside raises and the exchange ends, whatever the script makes of that.
//
// It may be called wherever a script runs: without an exchange (timers) limit alone holds.
func outside(a vm.Args, limit time.Duration, do func(ctx context.Context)) error {
	f, _ := a.VM.Slot.(*frame)
	if f == nil || f.x == nil {
		ctx := context.Background()
		if run, ok := a.VM.Slot.(*timerRun); ok {
			ctx = run.ctx
		}
		ctx, cancel := bounded(ctx, limit)
		defer cancel()
		return a.VM.Wait(func() { do(ctx) })
	}
	left := f.patience() - f.x.Waited
	if left <= 0 {
		return errPatience
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), left, errPatience)
	defer cancel()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	ctx, end := bounded(ctx, limit)
	defer end()
	watched := f.phase != phaseLog // then nobody waits any more
	if watched && !f.x.Lifeline.Watch(departure(leave)) {
		f.clientLeft(a)
	}
	began := core.Now()
	err := a.VM.Wait(func() { do(ctx) })
	f.x.Waited += core.Now().Sub(began)
	if watched && !f.x.Lifeline.Unwatch() {
		f.clientLeft(a)
	}
	return err
}

// briefly is outside for what has a short limit of its own and cannot be ended sooner: a client that leaves is noticed later.
func briefly(a vm.Args, do func()) error {
	f, _ := a.VM.Slot.(*frame)
	if f == nil || f.x == nil {
		return a.VM.Wait(do)
	}
	if f.x.Waited >= f.patience() {
		return errPatience
	}
	began := core.Now()
	err := a.VM.Wait(do)
	f.x.Waited += core.Now().Sub(began)
	return err
}

// hasPatience tells whether the filters of the exchange, if there is one, may wait so much longer.
func hasPatience(a vm.Args, d time.Duration) bool {
	f, _ := a.VM.Slot.(*frame)
	return f == nil || f.x == nil || f.patience()-f.x.Waited >= d
}

func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, slowError{limit})
}

// departure ends a wait when the client leaves.
type departure context.CancelCauseFunc

// Cut implements core.Cutter.
func (d departure) Cut() { d(errClientLeft) }

// clientLeft ends the exchange. It does not return.
func (f *frame) clientLeft(a vm.Args) {
	f.fault = core.Fail(core.StatusClientGone, "client left", fmt.Errorf("while %s waited", a.Func.Name))
	raise(a.L, errClientLeft.Error())
}

// patience is how long the filters of the exchange may wait in all.
func (f *frame) patience() time.Duration {
	if services := f.m.stage.services; services != nil {
		return services.Patience(f.x.Route)
	}
	return defaultPatience
}

// defaultPatience is the default of a route's total.
const defaultPatience = 15 * time.Second
