package vm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// VM is one Lua state with the scripts that it has loaded. One goroutine uses it at a time.
type VM struct {
	// Slot is what the caller attaches for the length of a call; bindings find it by From(L).Slot. The pool clears it.
	Slot any
	// Data is what the caller keeps with the VM for its life (handles that it reuses, tables of settings).
	Data any
	// Phase is the present phase, checked against Func.Phases. The pool clears it.
	Phase Phase

	budget   budget
	base     *Base
	main     thread
	born     time.Time
	envs     map[*lua.LTable]*environment
	loaded   map[*Script]lua.LValue
	pool     *Pool
	uses     int
	epoch    uint64
	unfit    Reason
	inCall   bool
	threads  map[*lua.LState]*thread // unfinished coroutines of this call
	nested   int                     // coroutines that run inside one another
	panicked *goPanic
	modules  map[string]lua.LValue // results of require
	pending  []string              // names being required
	sealed   []seal
	random   *rand.Rand
	seeded   bool
}

var _ context.Context = (*VM)(nil)

// New makes a VM. It costs about 30 us and 15 KiB.
func New(b *Base) *VM {
	limits := &b.options.Limits
	L := lua.NewState(lua.Options{
		CallStackSize:    limits.Calls,
		RegistrySize:     256, // less than 128 would silently mean 5,120
		RegistryMaxSize:  limits.Registers,
		RegistryGrowStep: 1024,
		SkipOpenLibs:     true,
	})
	v := &VM{
		base:   b,
		main:   newThread(b.layout, L),
		born:   time.Now(),
		envs:   map[*lua.LTable]*environment{},
		loaded: map[*Script]lua.LValue{},
		epoch:  b.epoch.Load(),
	}
	L.Panic = raise
	L.SetContext(v)
	L.SetMetatable(lua.LString(""), b.stringMT)
	L.G.MainThread, L.G.CurrentThread = L, L
	return v
}

// From is the VM in which a native runs.
func From(L *lua.LState) *VM { return L.Context().(*VM) }

// Base is what the VM shares with others.
func (v *VM) Base() *Base { return v.base }

// L is the main Lua thread. Natives must use the one that they are given.
func (v *VM) L() *lua.LState { return v.main.L }

// raise is the panic function of a thread: an error object and no traceback, which could cost 300 ms after many tail calls.
func raise(L *lua.LState) {
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1)})
}

// Load runs a script's chunk once in this VM and returns what it returned; later calls return the same value. The error is
// an *Error, and a script that failed is tried again at the next Load.
func (v *VM) Load(s *Script) (lua.LValue, error) {
	if r, ok := v.loaded[s]; ok {
		return r, nil
	}
	r, err := v.Run(s)
	if err == nil {
		v.loaded[s] = r
	}
	return r, err
}

// Run does what Load does and remembers nothing, for callers who keep what they need of the result and no more.
func (v *VM) Run(s *Script) (lua.LValue, error) {
	env := v.newEnv(s)
	fn := &lua.LFunction{Env: env.table, Proto: s.proto}
	phase := v.Phase
	v.Phase = v.base.options.LoadPhase
	r, err := v.run(fn, nil, v.base.options.Limits.LoadBudget)
	v.Phase = phase
	env.close()
	if err != nil {
		delete(v.envs, env.table)
		return nil, err
	}
	return r, nil
}

// Call calls fn within the budget and returns its first result (nil is lua.LNil). The error is an *Error. Whatever happens, the
// stack is empty afterwards and nothing of the call is left. It does not allocate by itself.
func (v *VM) Call(fn *lua.LFunction, args ...lua.LValue) (lua.LValue, error) {
	return v.run(fn, args, v.base.options.Limits.Budget)
}

func (v *VM) run(fn *lua.LFunction, args []lua.LValue, limit time.Duration) (result lua.LValue, err error) {
	if v.inCall {
		return nil, &Error{Message: "a call of the VM while another is running"}
	}
	v.inCall = true
	v.arm(limit)
	result, err = v.protect(fn, args)
	v.inCall = false
	if v.threads != nil || v.seeded || v.sealed != nil {
		err = v.tidy(err)
	}
	return result, err
}

func (v *VM) protect(fn *lua.LFunction, args []lua.LValue) (result lua.LValue, err error) {
	L := v.main.L
	defer v.rescue(&err)
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 1)
	result = L.Get(-1)
	L.SetTop(0)
	return result, nil
}

// rescue turns whatever was thrown into an *Error and resets the state.
func (v *VM) rescue(err *error) {
	r := recover()
	if r == nil {
		return
	}
	*err = v.explain(r)
	start := mark{upvalue: -1}
	v.main.closeSince(start)
	v.main.unwind(start)
	G := v.main.L.G
	G.CurrentThread = v.main.L
	v.nested, v.panicked = 0, nil
	v.pending = v.pending[:0]
}

// explain describes a thrown value. The frames are still those of the failure.
func (v *VM) explain(thrown any) *Error {
	api, ok := thrown.(*lua.ApiError)
	if !ok {
		v.unfit = RetiredPanic
		p, ok := thrown.(*goPanic)
		if !ok {
			p = &goPanic{thrown, string(debug.Stack())}
		}
		e := &Error{Message: fmt.Sprintf("panic: %v", p.value), Panic: true, Stack: p.stack}
		e.Script, e.Line = v.main.position()
		return e
	}
	e := &Error{Value: api.Object, Timeout: v.budget.expired}
	if e.Timeout {
		v.unfit = RetiredTimeout
	}
	positioned := false
	if text, ok := api.Object.(lua.LString); ok {
		e.Script, e.Line, e.Message, positioned = v.splitPosition(string(text))
	} else {
		e.Message = describe(api.Object)
	}
	if !positioned {
		e.Script, e.Line = v.main.position()
	}
	if e.Message == callsNothing {
		if name := v.main.callee(); name != "" {
			e.Message = "attempt to call '" + name + "', which is not a function"
		}
	}
	return e
}

const callsNothing = "attempt to call a non-function object"

// goPanic carries a Go panic through coroutines and pcall, which must not swallow it.
type goPanic struct {
	value any
	stack string
}

// position is where the innermost Lua function stands.
func (t *thread) position() (script string, line int) {
	for f := t.top(); f.ok(); f = f.parent() {
		if fn := f.fn(); fn != nil && !fn.IsG {
			return fn.Proto.SourceName, f.line()
		}
	}
	return "", 0
}

// callee is the name by which the innermost Lua function calls something, "" if it calls nothing.
func (t *thread) callee() string {
	f := t.top()
	if !f.ok() || f.fn() == nil || f.fn().IsG {
		return ""
	}
	for _, c := range f.fn().Proto.DbgCalls {
		if c.Pc == f.pc() && c.Name != "?" && c.Name != "(anonymous)" {
			return c.Name
		}
	}
	return ""
}

// tidy ends what must not outlive a call.
func (v *VM) tidy(err error) error {
	for L := range v.threads {
		L.Dead = true
	}
	v.threads = nil
	if v.seeded {
		v.random, v.seeded = nil, false
	}
	for i := range v.sealed {
		if s := &v.sealed[i]; !s.intact() && err == nil {
			err = &Error{Message: s.name + " is read-only: a metamethod of it was changed"}
		}
	}
	return err
}

// Print hands text to Options.Print.
func (v *VM) Print(text string) {
	if v.base.options.Print != nil {
		v.base.options.Print(v, text)
	}
}

// Random is the VM's own source of random numbers. Seeding it lasts until the end of the call.
func (v *VM) Random() *rand.Rand {
	if v.random == nil {
		v.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return v.random
}

// SeedRandom makes the random numbers of the rest of this call repeatable.
func (v *VM) SeedRandom(seed uint64) {
	v.random, v.seeded = rand.New(rand.NewPCG(seed, seed)), true
}
