package vm

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrBusy means that all VMs were in use for as long as a caller may wait.
	ErrBusy = errors.New("all Lua VMs are busy")
	// ErrCancelled means that the caller's cancel channel was closed while it waited.
	ErrCancelled = errors.New("cancelled while waiting for a Lua VM")
	// ErrWaiting means that the pool has its limit of VMs that wait for something outside.
	ErrWaiting = errors.New("too many Lua VMs are waiting")
)

// Reason is why a VM was dropped.
type Reason uint8

// The reasons, in the order of Stats.Retired.
const (
	fit Reason = iota
	RetiredTimeout
	RetiredPanic
	RetiredUses
	RetiredEpoch
	Reasons
)

// String is the reason as metrics label it.
func (r Reason) String() string {
	switch r {
	case RetiredTimeout:
		return "timeout"
	case RetiredPanic:
		return "panic"
	case RetiredUses:
		return "uses"
	case RetiredEpoch:
		return "epoch"
	}
	return ""
}

// PoolOptions bounds a pool. Zero values take the defaults.
type PoolOptions struct {
	Max        int           // VMs in use at once, those that wait outside not counted; default 64
	Wait       time.Duration // how long Take waits for a VM; default 100ms, negative: not at all
	MaxWaiting int           // VMs that may wait outside at once; default 1024, negative: none
	MaxUses    int           // uses after which a VM is dropped; default 100000, negative: never
	Counters   *Counters     // what the pool counts in; nil: counters of its own
}

// Counters are what pools count. A pool that takes another's place goes on with its counters. Safe for concurrent use.
type Counters struct {
	acquires, waits, exhausted atomic.Uint64
	outside, refused           atomic.Uint64
	waited                     atomic.Int64 // nanoseconds
	retired                    [Reasons]atomic.Uint64
}

// Pool lends VMs. The last one given back goes out first: its memory is in the caches. All methods are safe for concurrent
// use.
type Pool struct {
	base    *Base
	options PoolOptions

	mu      sync.Mutex
	idle    []*VM
	inUse   int // lent and not waiting
	waiting int // lent and waiting
	queue   []*waiter

	*Counters
}

// waiter is a Take in the queue. The right to a VM comes over ready.
type waiter struct{ ready chan *VM }

// Stats are a pool's counters (as its Counters have them) and gauges (now).
type Stats struct {
	Acquires  uint64        // VMs lent
	Waits     uint64        // times that a caller had to wait
	Waited    time.Duration // how long they waited in all
	Exhausted uint64        // times that it waited in vain
	Outside   uint64        // waits outside that began
	Refused   uint64        // waits outside that found no room
	Retired   [Reasons]uint64
	Size      int // VMs that exist
	InUse     int // VMs that run
	Waiting   int // VMs that wait outside
}

// NewPool makes an empty pool; VMs are made on demand.
func NewPool(b *Base, o PoolOptions) *Pool {
	if o.Max <= 0 {
		o.Max = 64
	}
	if o.Wait == 0 {
		o.Wait = 100 * time.Millisecond
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 1024
	}
	if o.MaxUses == 0 {
		o.MaxUses = 100000
	}
	if o.Counters == nil {
		o.Counters = new(Counters)
	}
	return &Pool{base: b, options: o, idle: make([]*VM, 0, min(o.Max, 64)), Counters: o.Counters}
}

// Take lends a VM. It waits at most PoolOptions.Wait (ErrBusy) and no longer than until cancel, which may be nil, is closed
// (ErrCancelled). Whoever takes it gives it back, whatever happens.
func (p *Pool) Take(cancel <-chan struct{}) (*VM, error) {
	p.mu.Lock()
	if p.inUse >= p.options.Max {
		return p.wait(cancel) // unlocks
	}
	p.inUse++
	v := p.pop()
	p.mu.Unlock()
	p.acquires.Add(1)
	if v == nil {
		v = p.make()
	}
	return v, nil
}

func (p *Pool) pop() *VM {
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	v := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return v
}

func (p *Pool) make() *VM {
	v := New(p.base)
	v.pool = p
	return v
}

// wait queues the caller. It is called with the lock held.
func (p *Pool) wait(cancel <-chan struct{}) (*VM, error) {
	p.waits.Add(1)
	if p.options.Wait < 0 {
		p.mu.Unlock()
		p.exhausted.Add(1)
		return nil, ErrBusy
	}
	w := &waiter{ready: make(chan *VM, 1)}
	p.queue = append(p.queue, w)
	p.mu.Unlock()
	began := time.Now()
	defer func() { p.waited.Add(int64(time.Since(began))) }()
	timer := time.NewTimer(p.options.Wait)
	defer timer.Stop()
	err := ErrBusy
	select {
	case v := <-w.ready:
		return p.handed(v), nil
	case <-timer.C:
	case <-cancel:
		err = ErrCancelled
	}
	if v, ok := p.leave(w); ok { // it came in the last moment
		return p.handed(v), nil
	}
	p.exhausted.Add(1)
	return nil, err
}

func (p *Pool) handed(v *VM) *VM {
	p.acquires.Add(1)
	if v == nil {
		return p.make()
	}
	return v
}

// leave takes w out of the queue, or returns what was handed to it.
func (p *Pool) leave(w *waiter) (*VM, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range p.queue {
		if q == w {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			return nil, false
		}
	}
	return <-w.ready, true
}

// Give takes a VM back. An unfit one is dropped.
func (p *Pool) Give(v *VM) {
	v.Slot, v.Phase = nil, 0
	v.uses++
	if r := p.reason(v); r != fit {
		p.retired[r].Add(1)
		v = nil
	}
	p.mu.Lock()
	p.inUse--
	p.pass(v)
	p.mu.Unlock()
}

// pass hands v (nil: the right to make one) to the first in the queue, or keeps it. It is called with the lock held.
func (p *Pool) pass(v *VM) {
	if len(p.queue) > 0 && p.inUse < p.options.Max {
		w := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.inUse++
		w.ready <- v
		return
	}
	if v != nil && len(p.idle) < p.options.Max {
		p.idle = append(p.idle, v)
	}
}

func (p *Pool) reason(v *VM) Reason {
	switch {
	case v.unfit != fit:
		return v.unfit
	case v.epoch != p.base.epoch.Load():
		return RetiredEpoch
	case p.options.MaxUses > 0 && v.uses >= p.options.MaxUses:
		return RetiredUses
	}
	return fit
}

// suspend takes the caller's VM out of the count while it waits; somebody else may run.
func (p *Pool) suspend() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting >= p.options.MaxWaiting {
		p.refused.Add(1)
		return ErrWaiting
	}
	p.outside.Add(1)
	p.waiting++
	p.inUse--
	p.pass(p.pop())
	return nil
}

// resume counts the VM again. It never waits, so for a moment more than Max may run.
func (p *Pool) resume() {
	p.mu.Lock()
	p.waiting--
	p.inUse++
	p.mu.Unlock()
}

// Stats reads the counters.
func (p *Pool) Stats() Stats {
	s := Stats{Acquires: p.acquires.Load(), Waits: p.waits.Load(), Waited: time.Duration(p.waited.Load()), Exhausted: p.exhausted.Load(),
		Outside: p.outside.Load(), Refused: p.refused.Load()}
	for i := range s.Retired {
		s.Retired[i] = p.retired[i].Load()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.InUse, s.Waiting, s.Size = p.inUse, p.waiting, p.inUse+p.waiting+len(p.idle)
	return s
}
