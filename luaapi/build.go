package luaapi

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/luaapi/lint"
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
	Redis    *redis.Registry
	Auth     *auth.Registry // nil: one of the pipeline's own, which nobody runs
	Shared   *Shared
	Pools    *PoolCounters        // nil: the pools count from 0
	Timers   *Timers              // nil: the scripts' timers do not run
	Metrics  *metrics.Plan        // of the same generation; nil: nobody counts
	Log      *slog.Logger         // nil: slog.Default
	Folder   string               // where gw.file.read finds its files; "": the configuration's scripts folder
	Clock    func() time.Duration // of limiters; nil: the system's
}

// Build compiles, checks and tries all scripts, and makes the pipeline of them. The error is a conf.Errors with every fault that was
// found: at the script's line, or at the configuration's key. Nothing that runs is touched before Pipeline.Commit.
func Build(o Options) (*Pipeline, error) {
	b, err := newBuilder(o)
	if err != nil {
		return nil, err
	}
	b.declareRedis()
	b.declareLimiters()
	b.makeFilters()
	b.makeStages()
	b.claimHeaders()
	if err = b.errs.Err(); err != nil {
		return nil, err
	}
	return b.pipeline(), nil
}

// Faults says what is wrong with scripts by themselves and with the settings of filters, whatever the rest of their configuration is. It needs
// no Options.Routes.
func Faults(o Options) conf.Errors {
	b, err := newBuilder(o)
	if err != nil {
		return nil
	}
	b.checkSettings()
	return b.errs
}

// newBuilder compiles the scripts and reads what they say of themselves.
func newBuilder(o Options) (_ *builder, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Limits == nil {
		o.Limits = new(limit.Registry)
	}
	if o.Redis == nil {
		o.Redis = new(redis.Registry)
	}
	if o.Auth == nil {
		o.Auth = new(auth.Registry)
	}
	if o.Pools == nil {
		o.Pools = new(PoolCounters)
	}
	if o.Shared == nil {
		o.Shared = NewShared(nil)
	}
	if o.Timers == nil {
		o.Timers = NewTimers(o.Log)
	}
	if o.Metrics == nil {
		if o.Metrics, err = uncounted(); err != nil {
			return nil, err
		}
	}
	b := &builder{o: o, scripts: map[string]*script{}, paths: map[string]string{}, libs: libsDigest(o.Config.Scripts.Lib), timed: map[*script]bool{}}
	b.world = &world{services: o.Services, log: o.Log, shared: o.Shared, timers: o.Timers, limits: o.Limits.Plan(), redis: o.Redis.Plan(o.Log), verifiers: o.Auth.Plan(),
		identity: &identity{}, kinds: newSurfaces(), metrics: o.Metrics,
		env: o.Config.Scripts.EnvValues, names: o.Config.Scripts.Env, files: files{dir: cmp.Or(o.Folder, o.Config.Scripts.Dir)},
		limitsHTTP: o.Config.Scripts.HTTP, delay: o.Config.Scripts.Delay}
	b.world.mask = newMasker(b.o.Config.Log.Mask)
	b.compile()
	if err = b.makeBase(); err != nil {
		return nil, err
	}
	b.readScripts()
	return b, nil
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
	seen     *lint.World       // what scripts see, once asked for
	libs     [sha256.Size]byte // digest of all libraries
	timers   []*timer
	timed    map[*script]bool // whose file's timers are among them
}

// raised notes an error of a script at its own line, or at pos when it has none.
func (b *builder) raised(pos conf.Pos, key string, err error) {
	var e *vm.Error
	if !errors.As(err, &e) {
		b.errs.Add(pos, key, "%s", b.world.mask.text(err.Error()))
		return
	}
	if path, ok := b.paths[e.Script]; ok {
		pos = conf.Pos{File: path, Line: e.Line}
	}
	b.errs.Add(pos, key, "%s", b.world.mask.text(e.Message))
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
		Strict:    "gw",
		Lib:       b.lib,
		Phases:    phaseNames,
		LoadPhase: phaseLoad,
		Print:     func(v *vm.VM, text string) { printed(log, v, text) },
		Limits:    vm.Limits{Budget: cfg.Budget, String: int(cfg.MaxString)},
	})
	return err
}

// poolOptions are the bounds of each stage's pool.
func (b *builder) poolOptions(stage string) vm.PoolOptions {
	cfg := &b.o.Config.Scripts
	o := vm.PoolOptions{Max: cfg.VMs, Wait: cfg.Wait, MaxWaiting: cfg.MaxWaiting, MaxUses: cfg.RetireAfter, Counters: b.o.Pools.of(stage)}
	if o.Wait == 0 {
		o.Wait = -time.Nanosecond
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = -1
	}
	return o
}

// timerPool are the bounds of the VMs for a stage's timers: as many as run at once, and a wait that none of them needs as a rule.
var timerPool = vm.PoolOptions{Max: 16, Wait: time.Minute, MaxWaiting: 256}
