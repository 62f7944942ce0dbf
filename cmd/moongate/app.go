package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/admin"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/server"
	"github.com/moongate/moongate/metrics"
)

// app is the gateway with what stands around it: the admin listener, the logs and, when asked for, the demo.
type app struct {
	options runOptions
	level   slog.LevelVar
	log     *slog.Logger
	passed  *server.Passed // by who started the process
	access  *gateway.AccessLog
	gateway *gateway.Gateway
	admin   *admin.Server
	scripts *scripting
	metrics *metrics.Metrics
	demo    *demo // nil without --demo
	started time.Time
	ending  atomic.Bool // a signal has asked for the end
	refused atomic.Pointer[admin.RefusedReload]
}

// openApp builds everything and binds every address; nothing is accepted before run.
func openApp(o runOptions, s streams) (*app, error) {
	a := &app{options: o, started: time.Now()}
	a.log = slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: &a.level}))
	libraries := slog.NewLogLogger(a.log.Handler(), slog.LevelDebug) // whose lines others can have them write, such as endpoints that break HTTP/2
	log.SetFlags(0)
	log.SetOutput(libraries.Writer())
	var err error
	if a.passed, err = passedSockets(); err != nil {
		return nil, err
	}
	a.admin = admin.NewServer(a.log, a.passed)
	a.scripts = newScripting(a.log)
	if a.metrics, err = metrics.New(metrics.Options{Version: release()}); err != nil {
		return nil, err
	}
	c, err := a.load()
	if err != nil {
		return nil, err
	}
	if err := a.open(c); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// open opens one part after the other; what is open when one fails is for close.
func (a *app) open(c *conf.Config) (err error) {
	if a.options.demo {
		if a.demo, err = openDemo(cmp.Or(string(jwtSecret(c)), demoSecret)); err != nil {
			return err
		}
	}
	if a.access, err = gateway.OpenAccessLog(c.Log.Access, a.log); err != nil {
		return conf.Errors{{Pos: c.Pos("log.access"), Key: "log.access", Want: err.Error()}}
	}
	a.gateway, err = gateway.New(gateway.Options{
		Load:     a.load,
		Pipeline: a.scripts.build,
		Faults:   a.scripts.faults,
		Metrics:  a.metrics,
		Log:      a.log,
		Access:   a.access,
		Passed:   a.passed,
		Prepare:  a.prepare,
	}, c)
	if err != nil {
		return err
	}
	commit, err := a.prepare(a.gateway.Generation())
	if err != nil {
		return err
	}
	commit()
	warn(a.log, a.gateway.Generation().Warnings())
	a.warnUnused()
	return nil
}

// warnUnused names the sockets that were passed for nobody.
func (a *app) warnUnused() {
	for _, address := range a.passed.Unused() {
		a.log.Warn("a socket was passed that no listener has the address of: its clients wait in vain", "address", address)
	}
}

// close lets go of an app that never ran.
func (a *app) close() {
	a.admin.Close()
	a.scripts.close()
	if a.demo != nil {
		a.demo.close()
	}
}

// load reads the configuration with what the command line lays over it.
func (a *app) load() (*conf.Config, error) {
	c, err := conf.Load(a.options.config, conf.Options{Listen: a.options.listen, Admin: a.options.admin, Also: a.scripts.faults})
	if err != nil || a.options.demo {
		return c, err
	}
	if err := refuseDemoSecret(c); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare lets the admin listener and the logs take part in a reload: it does what can fail and returns what cannot.
func (a *app) prepare(g *gateway.Generation) (commit func(), err error) {
	c := g.Config()
	if err := probeLog(c.Log.Access); err != nil {
		return nil, conf.Errors{{Pos: c.Pos("log.access"), Key: "log.access", Want: err.Error()}}
	}
	door, err := a.admin.Prepare(c.Admin.Address, admin.Options{
		Metrics: a.metrics.Handler(),
		Ready:   a.ready,
		Reload:  a.reload,
		Check:   a.check,
		Status:  a.status,
		Token:   string(c.Admin.Token),
	})
	if err != nil {
		return nil, conf.Errors{{Pos: c.Pos("admin.address"), Key: "admin.address", Want: err.Error()}}
	}
	return func() {
		door.Commit()
		if err := errors.Join(a.level.UnmarshalText([]byte(c.Log.Level)), a.access.Reopen(c.Log.Access)); err != nil {
			a.log.Error("log not changed", "error", err)
		}
	}, nil
}

// probeLog finds out whether an access log could be opened.
func probeLog(where string) error {
	if where == conf.AccessStdout || where == conf.AccessOff {
		return nil
	}
	f, err := os.OpenFile(where, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// ready tells whether the gateway wants traffic.
func (a *app) ready() (bool, string) {
	if a.ending.Load() || a.gateway.Draining() {
		return false, "draining"
	}
	if err := a.scripts.auth.Ready(); err != nil {
		return false, err.Error()
	}
	return true, ""
}

// reload is what every way to reload comes to: the signal, the admin listener, the watch.
func (a *app) reload() (admin.Reloaded, error) {
	tell(a.log, nowReloading())
	defer tell(a.log, nowServing)
	g, err := a.gateway.Reload()
	a.metrics.Reloaded(err == nil, time.Now())
	if err != nil {
		a.refused.Store(&admin.RefusedReload{At: time.Now().UTC(), Errors: admin.Lines(err)})
		a.log.Error("reload refused", "error", err)
		if err := a.access.Reopen(a.gateway.Generation().Config().Log.Access); err != nil { // it may have been moved away
			a.log.Error("access log not opened anew", "error", err)
		}
		return admin.Reloaded{}, err
	}
	a.refused.Store(nil)
	a.log.Info("reloaded", "generation", g.Number)
	warn(a.log, g.Warnings())
	a.warnUnused()
	return admin.Reloaded{Generation: uint64(g.Number), Warnings: texts(g.Warnings())}, nil
}

// check says what a reload would say and change.
func (a *app) check() (admin.Checked, error) {
	c, err := a.load()
	if err != nil {
		return admin.Checked{}, err
	}
	g, err := a.gateway.Try(c)
	if err != nil {
		return admin.Checked{}, err
	}
	return admin.Checked{Changes: conf.Diff(a.gateway.Generation().Config(), c), Warnings: texts(g.Warnings())}, nil
}

// run serves until ctx ends and everything has ended in good order. The admin listener and the demo stay to the last.
func (a *app) run(ctx context.Context) error {
	demoEnded := make(chan error, 1)
	demoCtx, endDemo := context.WithCancel(context.WithoutCancel(ctx))
	defer endDemo()
	go func() {
		if a.demo == nil {
			demoEnded <- nil
			return
		}
		demoEnded <- a.demo.run(demoCtx)
	}()
	var scripts sync.WaitGroup
	scripts.Go(func() { a.scripts.guardHeap(demoCtx) })
	scripts.Go(func() { a.scripts.sweepLimits(demoCtx) })
	scripts.Go(func() { a.scripts.timers.Run(demoCtx) })
	scripts.Go(func() { a.scripts.auth.Run(demoCtx) })
	err := a.gateway.Run(ctx)
	endDemo()
	scripts.Wait()
	a.admin.Close()
	a.scripts.close()
	return errors.Join(err, <-demoEnded, a.access.Close())
}

// printAddresses tells where the app listens.
func (a *app) printAddresses(out io.Writer) {
	for _, url := range a.gateway.URLs() {
		fmt.Fprintf(out, "serving on %s\n", url)
	}
	fmt.Fprintf(out, "admin on http://%s\n", a.admin.Addr())
}

// warn logs what is probably not meant.
func warn(log *slog.Logger, warnings conf.Errors) {
	for _, w := range warnings {
		log.Warn("configuration", "warning", w.Error())
	}
}

func texts(errs conf.Errors) []string {
	var list []string
	for _, e := range errs {
		list = append(list, e.Error())
	}
	return list
}
