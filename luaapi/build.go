package luaapi

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/luaapi/stdlib"
	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// Options are what a pipeline is made of.
type Options struct {
	Config   *conf.Config  // stages, scripts, filters, limiters
	Routes   []*core.Route // of the same configuration, by name; their ids are dense from 1
	Services core.Services // asked while requests run, and by scripts' init functions
	Limits   *limit.Registry
	Shared   *Shared
	Pools    *PoolCounters        // nil: the pools count from 0
	Metrics  *metrics.Plan        // of the same generation; nil: nobody counts
	Log      *slog.Logger         // nil: slog.Default
	Folder   string               // where gw.file.read finds its files; "": the configuration's scripts folder
	Clock    func() time.Duration // of limiters; nil: the system's
}

// Build compiles, checks and tries all scripts, and makes the pipeline of them. The error is a conf.Errors with every fault that was
// found: at the script's line, or at the configuration's key. Nothing that runs is touched before Pipeline.Commit.
func Build(o Options) (_ *Pipeline, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Limits == nil {
		o.Limits = new(limit.Registry)
	}
	if o.Pools == nil {
		o.Pools = new(PoolCounters)
	}
	if o.Shared == nil {
		o.Shared = NewShared()
	}
	if o.Metrics == nil {
		if o.Metrics, err = uncounted(); err != nil {
			return nil, err
		}
	}
	b := &builder{o: o, scripts: map[string]*script{}, paths: map[string]string{}}
	b.world = &world{services: o.Services, log: o.Log, shared: o.Shared, limits: o.Limits.Plan(), identity: &identity{}, kinds: newSurfaces(), metrics: o.Metrics,
		env: o.Config.Scripts.EnvValues, names: o.Config.Scripts.Env, files: files{dir: cmp.Or(o.Folder, o.Config.Scripts.Dir)}}
	b.compile()
	if err = b.makeBase(); err != nil {
		return nil, err
	}
	b.readScripts()
	b.declareLimiters()
	b.makeFilters()
	b.makeStages()
	b.claimHeaders()
	if err = b.errs.Err(); err != nil {
		return nil, err
	}
	return b.pipeline(), nil
}

// uncounted is a plan of metrics that nobody scrapes.
func uncounted() (*metrics.Plan, error) {
	m, err := metrics.New(metrics.Options{})
	if err != nil {
		return nil, err
	}
	return m.Plan(metrics.Generation{})
}

// builder makes a pipeline step by step and notes what is wrong.
type builder struct {
	o        Options
	errs     conf.Errors
	warnings conf.Errors
	world    *world
	base     *vm.Base
	lib      map[string]*vm.Script
	scripts  map[string]*script // by name; those that could be read
	paths    map[string]string  // file's name in errors to its path
	filters  []*filter
	stages   []*stage
}

// compile compiles the live scripts and the libraries.
func (b *builder) compile() {
	cfg := &b.o.Config.Scripts
	b.lib = map[string]*vm.Script{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Lib)) {
		text := cfg.Lib[name]
		file := "lib/" + strings.ReplaceAll(name, ".", "/") + ".lua"
		if code := b.compileFile(file, text); code != nil {
			b.lib[name] = code
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Live)) {
		text := cfg.Live[name]
		if code := b.compileFile(name+".lua", text); code != nil {
			b.scripts[name] = &script{name: name, file: name + ".lua", path: text.Path, source: text.Source, code: code}
		}
	}
}

func (b *builder) compileFile(file string, text conf.Script) *vm.Script {
	b.paths[file] = text.Path
	b.world.saysHeaders = b.world.saysHeaders || strings.Contains(text.Source, "headers")
	code, err := vm.Compile(file, text.Source)
	if err != nil {
		b.raised(conf.Pos{File: text.Path, Line: 1}, "", err)
		return nil
	}
	for _, w := range code.Warnings {
		b.warnings.Add(conf.Pos{File: text.Path, Line: w.Line}, "", "%s", w.Message)
	}
	return code
}

// raised notes an error of a script at its own line, or at pos when it has none.
func (b *builder) raised(pos conf.Pos, key string, err error) {
	var e *vm.Error
	if !errors.As(err, &e) {
		b.errs.Add(pos, key, "%s", err)
		return
	}
	if path, ok := b.paths[e.Script]; ok {
		pos = conf.Pos{File: path, Line: e.Line}
	}
	b.errs.Add(pos, key, "%s", e.Message)
}

func (b *builder) scriptFault(s *script, line int, format string, args ...any) {
	b.errs.Add(conf.Pos{File: s.path, Line: line}, "", format, args...)
}

func (b *builder) makeBase() (err error) {
	cfg := &b.o.Config.Scripts
	log := b.o.Log
	b.base, err = vm.NewBase(vm.Options{
		Funcs:     append(stdlib.Funcs(), Funcs()...),
		Values:    values(stdlib.Values()),
		Lib:       b.lib,
		Phases:    phaseNames,
		LoadPhase: phaseLoad,
		Print:     func(v *vm.VM, text string) { printed(log, v, text) },
		Limits:    vm.Limits{Budget: cfg.Budget, String: int(cfg.MaxString)},
	})
	return err
}

// readScripts runs every script in a VM that is thrown away and reads its table.
func (b *builder) readScripts() {
	for _, name := range slices.Sorted(maps.Keys(b.scripts)) {
		s := b.scripts[name]
		for _, w := range s.code.Undefined(b.base) {
			b.warnings.Add(conf.Pos{File: s.path, Line: w.Line}, "", "%s", w.Message)
		}
		faults := len(b.errs)
		if table := b.load(s); table != nil {
			b.readTable(s, table)
		}
		if len(b.errs) > faults {
			delete(b.scripts, name)
		}
	}
}

func (b *builder) load(s *script) *lua.LTable {
	v := vm.New(b.base)
	m := newMachine(&stage{world: b.world})
	m.loading = s.name
	v.Data = m
	result, err := v.Load(s.code)
	if err != nil {
		b.raised(conf.Pos{File: s.path, Line: 1}, "", err)
		return nil
	}
	table, ok := result.(*lua.LTable)
	if !ok {
		b.scriptFault(s, lastLine(s.source), "the script returned %s: it returns a table with its functions", describe(result))
		return nil
	}
	return vm.Thaw(table)
}

func lastLine(source string) int { return strings.Count(strings.TrimRight(source, "\n"), "\n") + 1 }

// readTable reads what a script says of itself.
func (b *builder) readTable(s *script, t *lua.LTable) {
	s.order = 50
	s.schema = &schema{fields: map[string]*setting{}}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, _ := key.(lua.LString)
		line := lineOf(s.source, string(name))
		switch i := slices.Index(functionNames[:], string(name)); {
		case i >= 0:
			fn, ok := v.(*lua.LFunction)
			if s.has[i] = ok; !ok {
				b.scriptFault(s, line, "%s is %s, not a function", name, describe(v))
			} else if fn.IsG {
				b.scriptFault(s, line, "%s is a function of the gateway, not of the script", name)
			}
		case name == "stage":
			stage, ok := v.(lua.LString)
			if s.stage = string(stage); !ok {
				b.scriptFault(s, line, "stage is %s, not a stage's name", describe(v))
			}
		case name == "order":
			order, ok := v.(lua.LNumber)
			if s.order = float64(order); !ok {
				b.scriptFault(s, line, "order is %s, not a number", describe(v))
			}
		case name == "on_error":
			choice, _ := v.(lua.LString)
			if s.onError = string(choice); s.onError != conf.FailOnError && s.onError != conf.ContinueOnError {
				b.scriptFault(s, line, `on_error is %s: it is "fail" or "continue"`, describe(v))
			}
		case name == "config":
			if config, ok := v.(*lua.LTable); ok {
				s.schema = b.readSchema(s, vm.Thaw(config))
			} else {
				b.scriptFault(s, line, "config is %s, not a table of settings", describe(v))
			}
		case name == "identity":
			b.readIdentity(s, line, v)
		default:
			b.scriptFault(s, line, "the table has an unknown field %s: a filter has stage, order, config, identity, on_error, init, on_request, on_response and on_log",
				describe(key))
		}
	}
	if s.stage == "" {
		b.scriptFault(s, lastLine(s.source), `the table has no stage: write stage = "NAME" with one of %s`, strings.Join(b.o.Config.Pipeline.Stages, ", "))
	}
}

func (b *builder) readIdentity(s *script, line int, v lua.LValue) {
	list, _ := v.(*lua.LTable)
	s.identity = stringsOf(list)
	if list == nil || len(s.identity) != vm.Thaw(list).MaxN() || s.identity == nil {
		b.scriptFault(s, line, `identity lists headers that only this filter may set: { "X-User-Id" }`)
	}
	for _, name := range s.identity {
		if !validHeaderName(name) {
			b.scriptFault(s, line, "identity: no header can be named %s", describe(lua.LString(visible(name))))
		}
	}
}

// declareLimiters makes the limiters of [limiter.NAME].
func (b *builder) declareLimiters() {
	for _, l := range b.o.Config.Limiters {
		b.declare(l.Pos, "limiter."+l.Name, l.Name, l.Rate, l.Burst)
	}
}

func (b *builder) declare(pos conf.Pos, key, name string, rate conf.Rate, burst int64) *limit.TokenBucket {
	bucket, err := b.world.limits.Declare(name, limit.Options{Rate: limit.Rate{Count: rate.Count, Per: rate.Per}, Burst: burst, Clock: b.o.Clock})
	if err != nil {
		b.errs.Add(pos, key, "%s", err)
		return nil
	}
	return bucket
}

// makeFilters joins the configured filters with their scripts, in the order of the pipeline.
func (b *builder) makeFilters() {
	order := b.o.Config.Pipeline.Stages
	for i := range b.o.Config.Filters {
		cf := &b.o.Config.Filters[i]
		s := b.scripts[cf.Script]
		if s == nil {
			if _, there := b.o.Config.Scripts.Live[cf.Script]; !there {
				b.errs.Add(cf.Pos, "filter."+cf.Name, "there is no script %s.lua", cf.Script)
			}
			continue
		}
		f := &filter{name: cf.Name, stage: s.stage, script: s, order: s.order}
		if cf.Stage != "" {
			f.stage = cf.Stage
		}
		if cf.HasOrder {
			f.order = float64(cf.Order)
		}
		f.goesOn = cmp.Or(cf.OnError, s.onError) == conf.ContinueOnError
		if !slices.Contains(order, f.stage) {
			if cf.Stage != "" {
				b.errs.Add(cf.Pos, "filter."+cf.Name+".stage", "%q is no stage: the stages are %s", f.stage, strings.Join(order, ", "))
			} else {
				b.scriptFault(s, lineOf(s.source, "stage"), "%q is no stage: the stages are %s", f.stage, strings.Join(order, ", "))
			}
			continue
		}
		b.filters = append(b.filters, f)
	}
	slices.SortFunc(b.filters, func(x, y *filter) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.stage), slices.Index(order, y.stage)), cmp.Compare(x.order, y.order),
			strings.Compare(x.name, y.name))
	})
}

// claimHeaders collects the identity headers of the scripts that are in use.
func (b *builder) claimHeaders() {
	for _, st := range b.stages {
		for _, s := range st.scripts {
			for _, name := range s.identity {
				b.world.identity.add(name, s)
			}
		}
	}
}

// poolOptions are the bounds of each stage's pool.
func (b *builder) poolOptions(stage string) vm.PoolOptions {
	cfg := &b.o.Config.Scripts
	o := vm.PoolOptions{Max: cfg.VMs, Wait: cfg.Wait, MaxWaiting: cfg.MaxWaiting, MaxUses: cfg.RetireAfter, Counters: b.o.Pools.of(stage)}
	if o.Wait == 0 {
		o.Wait = -time.Nanosecond
	}
	return o
}
