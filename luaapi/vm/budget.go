package vm

import (
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// sliceSteps is how many instructions (or charged steps of natives) pass between two looks at the clock.
	sliceSteps = 64
	// sliceLimit is the most time that one slice counts for: a goroutine that the scheduler kept waiting is not to blame.
	sliceLimit = 2 * time.Millisecond
	// longSlice is a slice that holds a wait for the processor, or heavy instructions (t[65535] = 1 takes 3 ms). A single one
	// counts for no more than this; the more of them come together, the more likely they are work.
	longSlice = 250 * time.Microsecond
)

// heat tells how many long slices came lately: each adds hot, each short one takes away 1.
const (
	hot     = 8
	hottest = 64
)

// closed is what Done returns once the budget is spent.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// budget counts the time of one call in slices. The VM is its own context.Context: gopher-lua asks Done before every
// instruction, which costs 7 to 20 % of Lua time against 20 to 50 for a cancelled context, and needs no watchdog.
type budget struct {
	left    int // steps until the clock is read
	slice   int // length of the slice in work
	heat    int
	limit   time.Duration // time of this call
	spent   time.Duration
	last    time.Duration // clock at the end of the last slice, 0 before the first
	grown   int           // bytes of strings made by this call
	expired bool
}

func (v *VM) arm(limit time.Duration) {
	v.budget = budget{left: sliceSteps / 2, slice: sliceSteps / 2, limit: limit}
}

// Done counts an instruction. It is gopher-lua's door; nobody else calls it.
func (v *VM) Done() <-chan struct{} {
	if v.budget.left--; v.budget.left > 0 {
		return nil
	}
	return v.tick()
}

// Err is the error that gopher-lua raises when Done's channel is closed.
func (v *VM) Err() error {
	if v.budget.expired {
		return spent{v.budget.limit}
	}
	return nil
}

// Deadline and Value complete context.Context; a VM has neither.
func (v *VM) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value returns nil.
func (v *VM) Value(any) any { return nil }

func (v *VM) tick() <-chan struct{} {
	b := &v.budget
	if b.expired {
		return closed
	}
	now := v.now()
	if b.last != 0 {
		b.count(now - b.last)
	}
	b.last, b.left = now, b.slice
	if b.spent >= b.limit {
		b.expired, b.left = true, 0
		return closed
	}
	return nil
}

// count adds the time of one slice and sets the length of the next: after a long one the clock is read more often.
func (b *budget) count(took time.Duration) {
	if took <= longSlice {
		b.spent += took
		b.slice = min(2*b.slice, sliceSteps)
		b.heat = max(b.heat-1, 0)
		return
	}
	b.spent += min(took, sliceLimit, longSlice*time.Duration(1+b.heat))
	b.slice = 1
	b.heat = min(b.heat+hot, hottest)
}

// now is a monotonic clock that is never 0.
func (v *VM) now() time.Duration { return time.Since(v.born) + 1 }

// Charge counts n steps of a native's work; a step is about the work of one instruction (10 to 20 ns, or 64 bytes copied). It
// raises when the budget is spent.
func (v *VM) Charge(n int) {
	if v.budget.left -= n; v.budget.left > 0 {
		return
	}
	if v.tick() != nil {
		v.running().RaiseError("%s", v.Err().Error())
	}
}

// Grow must be called before a string of n bytes is made: it raises when n is over the limit of one string or when the call has
// made more than Limits.Grow bytes of strings, and charges the copying.
func (v *VM) Grow(n int) {
	limits := &v.base.options.Limits
	if n > limits.String {
		v.running().RaiseError("string of %d bytes is longer than the limit of %d", n, limits.String)
	}
	if v.budget.grown += n; v.budget.grown > limits.Grow {
		v.running().RaiseError("more than %d bytes of strings made in one call", limits.Grow)
	}
	v.Charge(n >> 6)
}

// Wait runs f, in which the VM waits for something outside (a request, Redis): its time is not counted against the budget, and
// the VM does not count against its pool's size. It returns ErrWaiting, without running f, when the pool has its limit of
// waiting VMs. f must not touch the Lua state.
func (v *VM) Wait(f func()) error {
	v.tick()
	if v.pool != nil {
		if err := v.pool.suspend(); err != nil {
			return err
		}
		defer v.pool.resume()
	}
	defer func() { v.budget.last = v.now() }()
	f()
	return nil
}

// running is the Lua thread that runs now: the main one or a coroutine.
func (v *VM) running() *lua.LState {
	if th := v.main.L.G.CurrentThread; th != nil {
		return th
	}
	return v.main.L
}

type spent struct{ limit time.Duration }

func (s spent) Error() string { return "time budget of " + s.limit.String() + " spent" }
