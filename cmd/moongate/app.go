package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/admin"
)

// gateway is what the program needs of the part that serves. Its methods may be called from any goroutine.
type gateway interface {
	// Run serves on the listeners until ctx ends, then is not ready, lets requests that have begun end within the drain time, and
	// returns once nothing of it runs and the log is written.
	Run(ctx context.Context) error
	// Listeners are the addresses that clients connect to.
	Listeners() []net.Addr
	// Config is what serves now.
	Config() *conf.Config
	// Reload loads anew and swaps; callers that come while one reload runs share one further reload.
	Reload() (generation uint64, warnings []string, err error)
	// Try does what Reload does but the swap, and returns what would have served.
	Try() (*conf.Config, error)
	Ready() (ok bool, reason string)
	Metrics() http.Handler
}

// gatewayOptions are what a gateway is made from.
type gatewayOptions struct {
	Load   func() (*conf.Config, error) // the configuration as it is now
	Log    *slog.Logger
	Access io.Writer // where `access = "stdout"` goes
	// Prepare is called with each configuration before it serves. What it returns takes part in the swap: exactly one of commit and
	// abort is called. Its error refuses the configuration.
	Prepare func(*conf.Config) (commit, abort func(), err error)
}

// app is the gateway with what stands around it: the admin listener, the log and, when asked for, the demo.
type app struct {
	options runOptions
	level   slog.LevelVar
	log     *slog.Logger
	gateway gateway
	admin   *admin.Server
	demo    *demo // nil without --demo
}

// openApp builds everything and binds every address; nothing serves before run.
func openApp(o runOptions, s streams) (*app, error) {
	a := &app{options: o}
	a.log = slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: &a.level}))
	a.admin = admin.NewServer(a.log)
	if o.demo {
		secret, err := tokenSecret(o.config)
		if err != nil {
			return nil, err
		}
		if a.demo, err = openDemo(secret); err != nil {
			return nil, err
		}
	}
	var err error
	a.gateway, err = newGateway(gatewayOptions{Load: a.load, Log: a.log, Access: s.out, Prepare: a.prepare})
	if err != nil {
		if a.demo != nil {
			a.demo.close()
		}
		return nil, err
	}
	return a, nil
}

// load reads the configuration with what the command line lays over it.
func (a *app) load() (*conf.Config, error) {
	c, err := conf.Load(a.options.config, conf.Options{Listen: a.options.listen, Admin: a.options.admin})
	if err != nil || a.options.demo {
		return c, err
	}
	return c, refuseDemoSecret(c)
}

// prepare lets the admin listener and the log take part in a reload.
func (a *app) prepare(c *conf.Config) (commit, abort func(), err error) {
	door, err := a.admin.Prepare(c.Admin.Address, admin.Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.gateway.Metrics().ServeHTTP(w, r) }),
		Ready:   func() (bool, string) { return a.gateway.Ready() },
		Reload:  a.reload,
		Check:   a.check,
		Token:   string(c.Admin.Token),
	})
	if err != nil {
		return nil, nil, conf.Errors{{Pos: c.Pos("admin.address"), Key: "admin.address", Want: err.Error()}}
	}
	commit = func() {
		if err := a.level.UnmarshalText([]byte(c.Log.Level)); err != nil {
			a.log.Error("log level unknown", "level", c.Log.Level)
		}
		door.Commit()
	}
	return commit, door.Abort, nil
}

// reload is what every way to reload comes to: the signal, the admin listener, the watch.
func (a *app) reload() (admin.Reloaded, error) {
	generation, warnings, err := a.gateway.Reload()
	return admin.Reloaded{Generation: generation, Warnings: warnings}, err
}

func (a *app) check() (admin.Checked, error) {
	next, err := a.gateway.Try()
	if err != nil {
		return admin.Checked{}, err
	}
	found := admin.Checked{Changes: conf.Diff(a.gateway.Config(), next)}
	for _, w := range next.Warnings {
		found.Warnings = append(found.Warnings, w.Error())
	}
	return found, nil
}

// run serves until ctx ends and everything has ended in good order.
func (a *app) run(ctx context.Context) error {
	defer a.admin.Close()
	if a.demo == nil {
		return a.gateway.Run(ctx)
	}
	demoCtx, endDemo := context.WithCancel(context.WithoutCancel(ctx))
	demoEnded := make(chan error, 1)
	go func() { demoEnded <- a.demo.run(demoCtx) }()
	err := a.gateway.Run(ctx)
	endDemo()
	if demoErr := <-demoEnded; err == nil {
		err = demoErr
	}
	return err
}

// printAddresses tells where the app listens.
func (a *app) printAddresses(out io.Writer) {
	for _, addr := range a.gateway.Listeners() {
		fmt.Fprintf(out, "serving on http://%s\n", addr)
	}
	fmt.Fprintf(out, "admin on http://%s\n", a.admin.Addr())
}
