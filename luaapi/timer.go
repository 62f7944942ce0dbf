package luaapi

import (
	"context"
	"errors"
	"log/slog"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.time.every: functions that run by themselves, declared while a script is loaded.

var everyFunc = vm.Func{Name: "gw.time.every", Phases: phaseLoad | phaseInit,
	Doc: "Runs a function by itself, without a request: once as soon as its generation is live, and then once each interval, never twice at once. " +
		"Declared in the file it runs once for the script, in init once for each distinct settings. A reload ends the timers of the generation " +
		"that it replaces; where script, libraries and settings stay as they are the timer keeps its rhythm. An error is logged and counted, and the " +
		"timer goes on. A run has the budget of a function; what it waits for in a call to others ends with its generation.",
	Params: list(p("interval", "number", "seconds from one begin to the next, at least 0.1"), p("run", "fun()", "")),
	Do: func(a vm.Args) int {
		interval := a.Number(1)
		if !(interval >= leastInterval && interval < 1e9) {
			a.Bad(1, "an interval is seconds, at least %v", leastInterval)
		}
		fn := a.Function(2)
		if fn.IsG {
			a.Bad(2, "a function of the script expected")
		}
		if lib := a.VM.Requiring(); lib != "" {
			a.Raise("the file of a library declares no timers, since it is loaded once for all scripts: let library %s have a function that does, and call it from the script", lib)
		}
		a.VM.Data.(*machine).declare(a, timerDeclaration{fn: fn, interval: seconds(interval)})
		return 0
	}}

const (
	leastInterval = 0.1
	// timerLimit is how many timers a file, or init, may declare.
	timerLimit = 32
)

// timerDeclaration is a timer as it was declared in one VM.
type timerDeclaration struct {
	fn       *lua.LFunction
	interval time.Duration
}

// declare notes a timer of the script that is being loaded. Where a script is only looked at, nobody asks for them.
func (m *machine) declare(a vm.Args, d timerDeclaration) {
	if m.declared == nil {
		return
	}
	if len(*m.declared) >= timerLimit {
		a.Raise("more than %d timers", timerLimit)
	}
	*m.declared = append(*m.declared, d)
}

// timer is a timer of a pipeline.
type timer struct {
	stage    *stage
	settings *settings
	inInit   bool
	index    int // among those that the file, or init, declares
	interval time.Duration
	line     int // of the function
	cache    *cacheHandle
}

// timerRun is one run of a timer: what bindings find instead of a frame.
type timerRun struct {
	*timer
	ctx   context.Context
	calls counted // of gw.http
}

// sameAs tells whether a timer does what another did: it then keeps its rhythm.
func (t *timer) sameAs(o *timer) bool {
	return t.settings.filter.name == o.settings.filter.name && t.stage.name == o.stage.name && t.inInit == o.inInit && t.index == o.index &&
		t.interval == o.interval && t.settings.origin.equal(o.settings.origin)
}

// timersOf gathers what the scripts of a stage declared while m was prepared with all settings. A file's timers belong to the first stage
// that the script runs in.
func (b *builder) timersOf(st *stage, m *machine) (timers []*timer) {
	seen := map[*script]bool{}
	add := func(set *settings, inInit bool, declared []timerDeclaration) {
		for i, d := range declared {
			timers = append(timers, &timer{stage: st, settings: set, inInit: inInit, index: i, interval: d.interval, line: d.fn.Proto.LineDefined,
				cache: set.filter.handle(set)})
		}
	}
	for _, set := range st.settings {
		s := set.filter.script
		if !seen[s] && !b.timed[s] {
			add(set, false, m.filters[set.filter.index].timers)
			b.timed[s] = true
		}
		seen[s] = true
		add(set, true, m.initTimers[set.index])
	}
	return timers
}

// run runs the timer's function once, in a VM of its stage's timers.
func (t *timer) run(ctx context.Context) error {
	v, err := t.stage.timers.Take(ctx.Done())
	if err != nil {
		return err
	}
	defer t.stage.timers.Give(v)
	m, _ := v.Data.(*machine)
	if m == nil {
		m = newMachine(t.stage)
		v.Data = m
	}
	if m.confs[t.settings.index] == nil {
		if _, err := m.prepare(v, t.settings.filter, t.settings); err != nil {
			return err
		}
	}
	declared := m.filters[t.settings.filter.index].timers
	if t.inInit {
		declared = m.initTimers[t.settings.index]
	}
	if t.index >= len(declared) {
		return errors.New("the script declared this timer when it was tried, and no longer does")
	}
	v.Phase, v.Slot = phaseTimer, &timerRun{timer: t, ctx: ctx}
	_, err = v.Call(declared[t.index].fn)
	return err
}

// Tick runs every timer of the pipeline once, for tests. The error has all failures, with script and line.
func (p *Pipeline) Tick() error {
	var errs []error
	for _, t := range p.timers {
		if err := t.run(context.Background()); err != nil {
			errs = append(errs, t.failure(err))
		}
	}
	return errors.Join(errs...)
}

// failure names the timer in which a run failed.
func (t *timer) failure(err error) *ScriptError {
	e := scriptError(&turn{filter: t.settings.filter}, err)
	if e.Line == 0 {
		e.Line = t.line
	}
	return e
}

func (t *timer) attrs() []slog.Attr {
	return []slog.Attr{slog.String("stage", t.stage.name), slog.String("script", t.settings.filter.name)}
}
