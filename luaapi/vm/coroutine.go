package vm

import (
	"runtime/debug"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// Stock coroutines escape the budget (a child context never ends when Done returns nil), nest without limit and leave the
// state confused after an error in wrap. These use stock's create and resume underneath. A coroutine ends with the call
// that made it.

// createCost is what making a coroutine is charged: about 10 us.
const createCost = 600

// maxNested is how deep coroutines may resume one another; each takes Go stack.
const maxNested = 100

var stock = sync.OnceValue(func() (s struct{ create, resume lua.LGFunction }) {
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer L.Close()
	L.Push(L.NewFunction(lua.OpenCoroutine))
	L.Call(0, 1)
	lib := L.Get(-1).(*lua.LTable)
	s.create = lib.RawGetString("create").(*lua.LFunction).GFunction
	s.resume = lib.RawGetString("resume").(*lua.LFunction).GFunction
	return s
})

func coroutineFuncs() []Func {
	co := Param{Name: "co", Type: "thread"}
	f := Param{Name: "f", Type: "function"}
	values := Param{Name: "...", Type: "any"}
	return []Func{
		{Name: "coroutine.create", Doc: "Makes a coroutine with body f. It lives until the end of the filter function that made it.",
			Params: []Param{f}, Returns: []Param{co}, Do: coCreate},
		{Name: "coroutine.resume", Doc: "Starts or continues co: true and what it yields or returns, or false and its error.",
			Params: []Param{co, values}, Returns: []Param{{Name: "ok", Type: "boolean"}, values}, Do: coResume},
		{Name: "coroutine.wrap", Doc: "Makes a coroutine and returns a function that resumes it; errors are passed on.",
			Params: []Param{f}, Returns: []Param{{Name: "resume", Type: "function"}}, Do: coWrap},
		{Name: "coroutine.yield", Doc: "Suspends the running coroutine; the arguments become results of resume. Not across pcall, metamethods or iterators.",
			Params: []Param{values}, Returns: []Param{values}, Do: coYield},
		{Name: "coroutine.status", Doc: "\"running\", \"suspended\", \"normal\" or \"dead\".",
			Params: []Param{co}, Returns: []Param{{Name: "status", Type: "string"}}, Do: coStatus},
		{Name: "coroutine.running", Doc: "The running coroutine, nil outside of any.",
			Returns: []Param{{Name: "co", Type: "thread?"}}, Do: coRunning},
	}
}

func coCreate(a Args) int {
	a.L.Push(a.VM.newCoroutine(a))
	return 1
}

func (v *VM) newCoroutine(a Args) *lua.LState {
	body := a.Function(1)
	if body.IsG {
		a.Bad(1, "Lua function expected")
	}
	limit := v.base.options.Limits.Coroutines
	if len(v.threads) >= limit {
		a.Raise("more than %d unfinished coroutines", limit)
	}
	v.Charge(createCost)
	L := a.L
	L.SetTop(0)
	L.Push(body)
	L.RemoveContext() // no child context, which would cost and never end
	stock().create(L)
	L.SetContext(v)
	th := L.Get(-1).(*lua.LState)
	L.Pop(1)
	th.SetContext(v)
	t := newThread(v.base.layout, th)
	if v.threads == nil {
		v.threads = map[*lua.LState]*thread{}
	}
	v.threads[th] = &t
	return th
}

// threadOf is what the machine keeps about a running thread.
func (v *VM) threadOf(L *lua.LState) *thread {
	if L == v.main.L {
		return &v.main
	}
	return v.threads[L]
}

func (a Args) thread(i int) *lua.LState {
	if th, ok := a.L.Get(i).(*lua.LState); ok {
		return th
	}
	a.expected(i, "coroutine")
	return nil
}

func coResume(a Args) int {
	th := a.thread(1)
	if why := a.VM.cannotResume(th); why != "" {
		return a.Return(lua.LFalse, lua.LString(why))
	}
	return a.VM.resume(a.L, th)
}

func (v *VM) cannotResume(th *lua.LState) string {
	switch {
	case th.Dead || v.threads[th] == nil:
		return "cannot resume dead coroutine"
	case th == v.running():
		return "cannot resume running coroutine"
	case th.Parent != nil:
		return "cannot resume normal coroutine"
	case v.nested >= maxNested:
		return "coroutines are nested too deep"
	}
	return ""
}

// resume expects the thread and the values to pass as L's arguments and returns the number of results: true and values, or
// false and the error.
func (v *VM) resume(L, th *lua.LState) int {
	if want := v.threads[th].wanted(); want >= 0 {
		L.SetTop(1 + want)
	}
	v.nested++
	n := stock().resume(L)
	v.nested--
	if th.Dead {
		delete(v.threads, th)
		if v.panicked == nil && n == 2 && L.Get(-2) == lua.LFalse {
			if s, ok := L.Get(-1).(lua.LString); ok && strings.HasPrefix(string(s), "runtime error: ") {
				v.panicked = &goPanic{string(s), ""}
			}
		}
	}
	if v.panicked != nil { // on through all coroutines; rescue ends it
		panic(v.panicked)
	}
	return n
}

// wanted is how many values the suspended yield must give, -1 for any number. Stock leaves holes in the registers when it
// gets fewer.
func (t *thread) wanted() int {
	f := t.top()
	if !f.ok() || f.fn().IsG || f.pc() < 0 {
		return -1 // not started
	}
	return int(f.fn().Proto.Code[f.pc()]>>9)&0x1ff - 1 // operand C of OP_CALL
}

// notePanic keeps a Go panic that a coroutine is about to turn into a plain error.
func (v *VM) notePanic() {
	r := recover()
	switch r := r.(type) {
	case nil:
		return
	case *lua.ApiError:
	case *goPanic:
		v.panicked = r
	default:
		v.panicked = &goPanic{r, string(debug.Stack())}
	}
	panic(r)
}

func coWrap(a Args) int {
	v := a.VM
	th := v.newCoroutine(a)
	a.L.Push(&lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
		if why := v.cannotResume(th); why != "" {
			L.RaiseError("%s", why)
		}
		L.Insert(th, 1)
		n := v.resume(L, th)
		if L.Get(-n) == lua.LFalse {
			L.Error(L.Get(-1), 0)
		}
		return n - 1
	}})
	return 1
}

func coYield(a Args) int {
	t := a.VM.threadOf(a.L)
	if a.L == a.VM.main.L || t == nil {
		a.Raise("attempt to yield from outside a coroutine")
	}
	if t.crossesGo() {
		a.Raise("attempt to yield across metamethod/C-call boundary")
	}
	if t.inTailCall() {
		a.Raise("attempt to yield in a tail call; write 'local x = coroutine.yield() return x'")
	}
	return -1
}

// crossesGo tells whether Go code lies between the running native and the start of the thread: a native, a metamethod or
// an iterator of a for loop. Such code cannot be suspended.
func (t *thread) crossesGo() bool {
	for f := t.top().parent(); f.ok(); f = f.parent() {
		fn := f.fn()
		if fn.IsG {
			return true
		}
		if pc := f.pc(); pc >= 0 {
			if op := int(fn.Proto.Code[pc] >> 26); op != lua.OP_CALL && op != lua.OP_TAILCALL {
				return true
			}
		}
	}
	return false
}

// inTailCall tells whether the running native was called by return f(...). See keepFrames.
func (t *thread) inTailCall() bool {
	f := t.top().parent()
	return f.ok() && !f.fn().IsG && f.pc() >= 0 && int(f.fn().Proto.Code[f.pc()]>>26) == lua.OP_TAILCALL
}

func coStatus(a Args) int {
	th := a.thread(1)
	status := "suspended"
	switch {
	case th == a.VM.running():
		status = "running"
	case th.Dead || a.VM.threads[th] == nil:
		status = "dead"
	case th.Parent != nil:
		status = "normal"
	}
	a.L.Push(lua.LString(status))
	return 1
}

func coRunning(a Args) int {
	if a.L == a.VM.main.L {
		a.L.Push(lua.LNil)
	} else {
		a.L.Push(a.L)
	}
	return 1
}
