package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// runOptions are the flags of run.
type runOptions struct {
	config string
	listen string
	admin  string
	demo   bool
	watch  bool
}

func runVerb() verb {
	return verb{
		name: "run",
		does: "serve",
		about: `usage: moongate run -c FILE [--demo] [--watch] [--listen ADDRESS] [--admin ADDRESS]

Serves as the configuration and the scripts beside it say, until TERM or INT. Then it is not ready at once, ends what has
begun within the drain time, and exits 0; a second TERM or INT ends it there and then.

HUP, "moongate reload" and POST /reload on the admin listener read configuration and scripts again. If anything is wrong
with them, the gateway goes on with what it has and says why. The access log goes to standard output unless [log] says
otherwise, all else to standard error.

  moongate run -c conf/gateway.toml --demo
  moongate run -c gateway.toml --listen 127.0.0.1:0 --admin 127.0.0.1:0     on free ports, which it prints`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			o := runOptions{}
			file := configFlag(fs)
			fs.BoolVar(&o.demo, "demo", false, "serve the demo upstreams too, and allow the demo's secret")
			fs.BoolVar(&o.watch, "watch", false, "reload when a file of the configuration or a script changes")
			fs.StringVar(&o.listen, "listen", "", "`ADDRESS` the first listener's, instead of the configuration's")
			fs.StringVar(&o.admin, "admin", "", "`ADDRESS` the admin listener's, instead of the configuration's")
			return func(s streams) error {
				o.config = *file
				return run(o, s)
			}
		},
	}
}

// errCut says that a second signal did not let the requests end.
var errCut = errors.New("ended by a second signal before every request had ended")

func run(o runOptions, s streams) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGPIPE) // who reads the access log may go: lines are lost then, requests are not
	a, err := openApp(o, s)
	if err != nil {
		return err
	}
	a.printAddresses(s.err)
	if o.demo {
		a.printTrial(s.err)
	}
	return a.serve(signals)
}

// serve runs the app and does what the signals say.
func (a *app) serve(signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	again := make(chan struct{}, 1)
	go a.reloads(ctx, again)
	tell(a.log, nowServing)
	if a.options.watch {
		go watch(ctx, func() []string { return a.gateway.Generation().Config().Sources }, again)
	}
	for {
		select {
		case err := <-ended:
			return err
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
				ask(again)
			case ctx.Err() != nil:
				return errCut
			default:
				a.ending.Store(true) // not ready before anything else
				a.log.Info("draining", "signal", sig.String())
				tell(a.log, nowStopping)
				stop()
			}
		}
	}
}

// reloads reloads once for every ask that comes while no other waits.
func (a *app) reloads(ctx context.Context, again <-chan struct{}) {
	for {
		select {
		case <-again:
			_, _ = a.reload() // it has logged what became of it
		case <-ctx.Done():
			return
		}
	}
}

// ask makes sure that one more reload comes.
func ask(again chan<- struct{}) {
	select {
	case again <- struct{}{}:
	default:
	}
}

// printTrial tells what to type next.
func (a *app) printTrial(out io.Writer) {
	fmt.Fprintf(out, `
Try:
  curl "http://%[1]s/api/login?user=tom"
  TOKEN=$(%[3]s token -c %[4]s --user tom)
  curl -H "Authorization: Bearer $TOKEN" "http://%[1]s/api/user/123?detail=true"
  curl -H "Authorization: Bearer $TOKEN" -H "X-Version: v2" "http://%[1]s/api/user/123"
  curl "http://%[1]s/api/user/123"
  curl "http://%[2]s/metrics"

`, a.gateway.Addresses()[0], a.admin.Addr(), os.Args[0], a.options.config)
}
