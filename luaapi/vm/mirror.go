package vm

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// gopher-lua closes too many upvalues when an error is caught and too few when an error handler runs, and it cannot
// unwind a state without building a traceback. Both are mended here by reading a handful of unexported fields. This file
// and shape.go are the only ones that do; layout finds them by name and type and refuses to work with a gopher-lua that differs.

// frameStack and registry are the parts of gopher-lua's unexported types that unwinding needs.
type (
	frameStack interface {
		Sp() int
		SetSp(sp int)
	}
	registry interface {
		Top() int
		SetTop(top int)
	}
)

// layout holds the offsets of unexported fields.
type layout struct {
	frames, registry, currentFrame, errorFunc, openUpvalues uintptr // in lua.LState
	frameStackType, registryType                            reflect.Type
	frameFn, frameParent, framePc                           uintptr // in lua.callFrame
	upvalueNext, upvalueIndex                               uintptr // in lua.Upvalue
}

// knobs sets gopher-lua's process-wide settings and finds its layout, once.
//
// MaxArrayIndex: stock would allocate 3 GB for t[50000000] = 1; above 65,536 a key goes to the hash part. Larger values
// let one store outlast a budget (1<<20: 76 ms). CompatVarArg: every call of a vararg function that does not use "..." would
// make a table "arg" (2.7 KiB), which Lua 5.1's manual has not.
var knobs = sync.OnceValues(func() (*layout, error) {
	lua.MaxArrayIndex = MaxArray + 1
	lua.CompatVarArg = false
	return findLayout()
})

// MaxArray is the largest index of a table's array part. Natives that build lists raise beyond it.
const MaxArray = 1<<16 - 1

func findLayout() (*layout, error) {
	state := reflect.TypeFor[lua.LState]()
	upvalue := reflect.TypeFor[lua.Upvalue]()
	var missing []string
	field := func(t reflect.Type, name string, kind reflect.Kind) reflect.StructField {
		f, ok := t.FieldByName(name)
		if !ok || f.Type.Kind() != kind {
			missing = append(missing, t.Name()+"."+name)
		}
		return f
	}
	m := &layout{}
	frames := field(state, "stack", reflect.Interface)
	regs := field(state, "reg", reflect.Pointer)
	current := field(state, "currentFrame", reflect.Pointer)
	m.frames, m.frameStackType = frames.Offset, frames.Type
	m.registry, m.registryType = regs.Offset, regs.Type
	m.currentFrame = current.Offset
	m.errorFunc = field(state, "hasErrorFunc", reflect.Bool).Offset
	m.openUpvalues = field(state, "uvcache", reflect.Pointer).Offset
	m.upvalueNext = field(upvalue, "next", reflect.Pointer).Offset
	m.upvalueIndex = field(upvalue, "index", reflect.Int).Offset
	if current.Type != nil && current.Type.Kind() == reflect.Pointer {
		frame := current.Type.Elem()
		m.frameFn = field(frame, "Fn", reflect.Pointer).Offset
		m.frameParent = field(frame, "Parent", reflect.Pointer).Offset
		m.framePc = field(frame, "Pc", reflect.Int).Offset
	}
	if !matchesTable(reflect.TypeFor[lua.LTable]()) {
		missing = append(missing, "LTable")
	}
	if missing != nil {
		return nil, fmt.Errorf("this gopher-lua is not the one the machine was built for: %v differ", missing)
	}
	return m, nil
}

// thread is one Lua thread (the main one or a coroutine) with what unwinding it needs.
type thread struct {
	L      *lua.LState
	m      *layout
	frames frameStack
	regs   registry
}

func newThread(m *layout, L *lua.LState) thread {
	base := unsafe.Pointer(L)
	frames := reflect.NewAt(m.frameStackType, unsafe.Add(base, m.frames)).Elem().Interface()
	regs := reflect.NewAt(m.registryType, unsafe.Add(base, m.registry)).Elem().Interface()
	return thread{L: L, m: m, frames: frames.(frameStack), regs: regs.(registry)}
}

// mark is a point to which a thread can be unwound.
type mark struct {
	sp, top   int
	frame     unsafe.Pointer
	upvalue   int // index of the topmost open upvalue, -1 if none
	errorFunc bool
}

func (t *thread) mark(nargs int) mark {
	return mark{
		sp:        t.frames.Sp(),
		top:       t.regs.Top() - nargs - 1,
		frame:     *t.framePointer(),
		upvalue:   t.topUpvalue(),
		errorFunc: *t.errorFunc(),
	}
}

// closeSince closes the upvalues that were opened after the mark and nothing else. Registers are still in place.
func (t *thread) closeSince(to mark) {
	head := (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(t.L), t.m.openUpvalues))
	link := head
	for *link != nil && t.upvalueIndex(*link) <= to.upvalue {
		link = t.upvalueNext(*link)
	}
	for uv := *link; uv != nil; uv = *t.upvalueNext(uv) {
		uv.Close()
	}
	*link = nil
}

// unwind puts the thread back to the mark; the function and its arguments are gone from the registers.
func (t *thread) unwind(to mark) {
	t.frames.SetSp(to.sp)
	*t.framePointer() = to.frame
	t.regs.SetTop(to.top)
	*t.errorFunc() = to.errorFunc
}

func (t *thread) errorFunc() *bool { return (*bool)(unsafe.Add(unsafe.Pointer(t.L), t.m.errorFunc)) }

func (t *thread) framePointer() *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(t.L), t.m.currentFrame))
}

func (t *thread) topUpvalue() int {
	top := -1
	for uv := *(**lua.Upvalue)(unsafe.Add(unsafe.Pointer(t.L), t.m.openUpvalues)); uv != nil; uv = *t.upvalueNext(uv) {
		top = t.upvalueIndex(uv)
	}
	return top
}

func (t *thread) upvalueNext(uv *lua.Upvalue) **lua.Upvalue {
	return (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(uv), t.m.upvalueNext))
}

func (t *thread) upvalueIndex(uv *lua.Upvalue) int {
	return *(*int)(unsafe.Add(unsafe.Pointer(uv), t.m.upvalueIndex))
}

// frame is a view of one call frame.
type frame struct {
	p unsafe.Pointer
	m *layout
}

func (t *thread) top() frame { return frame{*t.framePointer(), t.m} }

func (f frame) ok() bool { return f.p != nil }

func (f frame) fn() *lua.LFunction { return *(**lua.LFunction)(unsafe.Add(f.p, f.m.frameFn)) }

func (f frame) parent() frame {
	return frame{*(*unsafe.Pointer)(unsafe.Add(f.p, f.m.frameParent)), f.m}
}

// pc is the index of the instruction in work; -1 before the first.
func (f frame) pc() int { return *(*int)(unsafe.Add(f.p, f.m.framePc)) - 1 }

// line is the source line of the instruction in work, 0 in a Go function.
func (f frame) line() int {
	fn := f.fn()
	if fn == nil || fn.IsG {
		return 0
	}
	if pc := f.pc(); pc >= 0 && pc < len(fn.Proto.DbgSourcePositions) {
		return fn.Proto.DbgSourcePositions[pc]
	}
	return fn.Proto.LineDefined
}
