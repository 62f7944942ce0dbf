package luaapi

import (
	"errors"
	"log/slog"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// stage is a core.Stage whose filters are scripts. A VM is held while its functions run, and one for all filters of the stage.
type stage struct {
	name     string
	pool     *vm.Pool
	timers   *vm.Pool // of the scripts' timers, so that they take no VM from requests
	scripts  []*script
	settings []*settings
	plans    []plan // by Route.ID; 0 is no route

	*world
}

// plan is what a route has in a stage.
type plan struct {
	before int    // turns of earlier stages
	turns  []turn // in order
	has    [functions]bool
	shared bool // another goroutine may run functions for the exchange: Exchange.Filters keeps them apart
}

// Name is the stage's name.
func (s *stage) Name() string { return s.name }

func (s *stage) plan(route *core.Route) *plan {
	if route == nil {
		return &s.plans[0]
	}
	return &s.plans[route.ID]
}

// Request runs the request functions.
func (s *stage) Request(x *core.Exchange) (*core.Reply, error) {
	p := s.plan(x.Route)
	if !p.has[onRequest] {
		x.Turn = p.before + len(p.turns)
		return nil, nil
	}
	r, err := s.begin(x, phaseRequest)
	if err != nil {
		return nil, err
	}
	err = r.request(x, p)
	if err = s.holdBack(x, r.frame.delay, err); err != nil {
		return nil, err
	}
	return r.frame.reply, nil
}

// request gives the filters their turns until one answers, and the VM back.
func (r *runner) request(x *core.Exchange, p *plan) error {
	defer r.end()
	for i := range p.turns {
		x.Turn = p.before + i + 1
		if err := r.run(&p.turns[i], onRequest); err != nil {
			return err
		}
		if r.frame.reply != nil {
			break
		}
	}
	return nil
}

// Response runs the response functions of the filters whose turn had come, the last one first, and counts Turn down. After an error
// it may be called again: it goes on with the filters that remain. Without a route all filters run, for none had a turn.
func (s *stage) Response(x *core.Exchange) error {
	p := s.plan(x.Route)
	n := len(p.turns)
	if x.Route != nil {
		n = min(n, x.Turn-p.before)
	}
	if n <= 0 || !p.has[onResponse] {
		return nil
	}
	if p.shared {
		x.Filters.Lock()
		defer x.Filters.Unlock()
	}
	r, err := s.begin(x, phaseResponse)
	if err != nil {
		return err
	}
	defer r.end()
	for i := n - 1; i >= 0; i-- {
		if x.Route != nil {
			x.Turn = p.before + i
		}
		if err := r.run(&p.turns[i], onResponse); err != nil {
			return err
		}
	}
	return nil
}

// Log runs the log functions. What fails there is logged and hurts nobody.
func (s *stage) Log(x *core.Exchange) {
	p := s.plan(x.Route)
	if !p.has[onLog] {
		return
	}
	r, err := s.begin(x, phaseLog)
	if err != nil {
		s.logger(x).Error("log filters skipped", "stage", s.name, "error", err.Error())
		return
	}
	defer r.end()
	for i := range p.turns {
		if err := r.run(&p.turns[i], onLog); err != nil && !p.turns[i].filter.breaker.tripped() {
			s.logger(x).Error("log filter failed", "stage", s.name, "error", cause(err))
		}
	}
}

func cause(err error) string {
	var e *core.Error
	if errors.As(err, &e) && e.Cause != nil {
		return e.Cause.Error()
	}
	return err.Error()
}

// logger writes lines that belong to an exchange.
func (s *stage) logger(x *core.Exchange) *slog.Logger {
	return s.log.With("request_id", string(x.RequestID), "trace_id", string(x.TraceID))
}

// runner is a VM in the hands of one exchange.
type runner struct {
	stage *stage
	vm    *vm.VM
	m     *machine
	frame *frame
	since core.Instant
}

func (s *stage) begin(x *core.Exchange, phase vm.Phase) (runner, error) {
	v, err := s.pool.Take(nil)
	if err != nil {
		return runner{}, core.Fail(503, "busy, try again", err)
	}
	m, _ := v.Data.(*machine)
	if m == nil {
		m = newMachine(s)
		v.Data = m
	}
	r := runner{stage: s, vm: v, m: m, frame: m.begin(x, phase), since: core.Now()}
	v.Slot, v.Phase = r.frame, phase
	return r, nil
}

func (r *runner) end() {
	r.frame.end()
	r.stage.pool.Give(r.vm)
}

// run gives a filter its turn. An error is what the exchange fails with.
func (r *runner) run(t *turn, function int) error {
	if !t.filter.script.has[function] {
		return nil
	}
	if !t.filter.breaker.admits(r.since) {
		return t.filter.rest(t)
	}
	return r.settle(t, r.call(t, function), "filter failed, request goes on")
}

// settle counts a run of a filter's function and says what the exchange fails with because of it; goesOn is what the log says when
// nothing does.
func (r *runner) settle(t *turn, err error, goesOn string) error {
	now := core.Now()
	observe(t.filter.metrics, now.Sub(r.since), err)
	r.since = now
	f := r.frame
	if f.fault != nil {
		return f.fault
	}
	if err == nil {
		t.filter.breaker.succeeded()
		return nil
	}
	failure := scriptError(t, err)
	failure.Message = r.stage.mask.text(failure.Message)
	if t.filter.breaker.failed(now) {
		t.filter.metrics.Trip()
		r.stage.log.Error("filter rests", "stage", r.stage.name, "script", t.filter.name, "error", failure.Error())
	}
	f.reply = nil
	if t.filter.goesOn && !failure.Timeout || t.filter.goesOnLate && failure.Timeout {
		r.stage.logger(f.x).Error(goesOn, "stage", r.stage.name, "script", t.filter.name, "error", failure.Error())
		return nil
	}
	return broken(failure)
}

// rest is what an exchange fails with, if it does, while a filter rests.
func (f *filter) rest(t *turn) error {
	if f.goesOn {
		return nil
	}
	return core.Fail(503, "temporarily unavailable", scriptError(t, errTripped))
}

var errTripped = errors.New("rests, because all it did was fail")

// call calls a function of a filter's script and looks at what it returned.
func (r *runner) call(t *turn, function int) error {
	fn, err := r.ready(t, function)
	if err != nil {
		return err
	}
	f := r.frame
	result, err := r.vm.Call(fn, &f.main, &f.ctx, f.conf)
	switch {
	case err != nil:
		return err
	case function != onRequest:
		if result != lua.LNil {
			return wrongResult(fn, functionNames[function]+" returned "+describe(result)+": it returns nothing")
		}
	case f.reply != nil && result != lua.LValue(replyMark):
		return wrongResult(fn, notReturned)
	case f.reply == nil && result != lua.LNil:
		return wrongResult(fn, "on_request returned "+describe(result)+": it returns nothing or gw.respond(...)")
	}
	return nil
}

const notReturned = "gw.respond was called and its result not returned: write `return gw.respond(...)`"

// ready makes the frame that of a filter's turn and gives the function to call.
func (r *runner) ready(t *turn, function int) (*lua.LFunction, error) {
	conf := r.m.confs[t.settings.index]
	if conf == nil {
		var err error
		if conf, err = r.prepare(t); err != nil {
			return nil, err
		}
	}
	fn := r.m.filters[t.filter.index].fn[function]
	if fn == nil {
		return nil, errors.New("the script defined " + functionNames[function] + " when it was tried, and no longer does")
	}
	r.frame.turn, r.frame.conf = t, conf
	return fn, nil
}

// prepare loads a filter's script and settings into the VM.
func (r *runner) prepare(t *turn) (*lua.LTable, error) {
	slot, phase := r.vm.Slot, r.vm.Phase
	defer func() { r.vm.Slot, r.vm.Phase = slot, phase }()
	r.vm.Slot = nil
	return r.m.prepare(r.vm, t.filter, t.settings)
}
