package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/server"
	"github.com/moongate/moongate/core/upstream"
	"github.com/moongate/moongate/metrics"
)

// New builds the first generation of c and listens. Nothing is accepted before Run.
func New(o Options, c *conf.Config) (*Gateway, error) {
	g := &Gateway{opts: o, listeners: map[string]*server.Listener{}, outbound: newOutbound(o.Log)}
	g.server = server.New(g, serverSettings(c), o.Log)
	gen, err := g.build(c, nil)
	if err == nil {
		var fresh map[string]*server.Listener
		if fresh, err = g.listen(c); err == nil {
			g.swap(gen, fresh)
			return g, nil
		}
	}
	_ = g.server.Shutdown(context.Background())
	return nil, err
}

// Run serves until ctx ends, then drains: it stops accepting, lets requests in flight end for as long as the configuration says, and
// returns an error when some had to be cut.
func (g *Gateway) Run(ctx context.Context) error {
	g.reloading.Lock()
	for _, l := range g.listeners {
		g.serve(l)
	}
	g.running = true
	g.watch(g.current.Load())
	g.reloading.Unlock()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			g.current.Load().EachUpstream(func(u *upstream.Upstream) { u.Sweep(core.Now()) })
			g.outbound.origins.Sweep(core.Now())
			g.giveBack()
		case <-ctx.Done():
			return g.drain()
		}
	}
}

// sweepEvery is how often idle connections are looked at.
const sweepEvery = 5 * time.Second

// manyRested is how many connections must have given their buffers back before it is worth a collection.
const manyRested = 500

// giveBack returns memory to the system after many connections have become idle: an idle gateway would keep it, since nothing makes the
// collector run.
func (g *Gateway) giveBack() {
	if rested := g.server.Rested(); rested-g.rested >= manyRested {
		g.rested = rested
		runtime.GC() // a pooled buffer outlives one collection
		debug.FreeOSMemory()
	}
}

func (g *Gateway) drain() error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	g.draining.Store(true)
	gen := g.current.Load()
	g.tunnels.shutdown(gen.config.HTTP.Drain)
	ctx, cancel := context.WithTimeout(context.Background(), gen.config.HTTP.Drain)
	defer cancel()
	err := g.server.Shutdown(ctx)
	g.serving.Wait()
	g.outbound.close()
	gen.EachUpstream(func(u *upstream.Upstream) { u.Retire(nil) })
	if err != nil {
		return fmt.Errorf("requests were still in flight after %s and were cut", gen.config.HTTP.Drain)
	}
	return nil
}

// Draining tells whether the gateway takes no new connections any more.
func (g *Gateway) Draining() bool { return g.draining.Load() }

// reload is one reload that any number of callers may wait for.
type reload struct {
	done chan struct{}
	gen  *Generation
	err  error
}

var errDraining = errors.New("the gateway is shutting down")

// Reload reads the configuration anew and, when all of it is good, serves by it from now on. With any error everything stays as it was.
// Calls while a reload runs become one more, which sees what all of them saw.
func (g *Gateway) Reload() (*Generation, error) {
	if g.draining.Load() {
		return nil, errDraining
	}
	mine := &reload{done: make(chan struct{})}
	if !g.pending.CompareAndSwap(nil, mine) {
		if other := g.pending.Load(); other != nil {
			<-other.done
			return other.gen, other.err
		}
		return g.Reload()
	}
	g.reloading.Lock()
	g.pending.Store(nil) // who comes now may have seen newer files than we shall read
	mine.gen, mine.err = g.reload()
	g.reloading.Unlock()
	close(mine.done)
	return mine.gen, mine.err
}

// reload is called with g.reloading held.
func (g *Gateway) reload() (*Generation, error) {
	if g.draining.Load() {
		return nil, errDraining
	}
	c, err := g.opts.Load()
	if err != nil {
		return nil, err
	}
	gen, err := g.build(c, g.current.Load())
	if err != nil {
		return nil, err
	}
	fresh, err := g.listen(c)
	if err != nil {
		return nil, err
	}
	commit := func() {}
	if g.opts.Prepare != nil {
		if commit, err = g.opts.Prepare(gen); err != nil {
			closeAll(fresh)
			return nil, err
		}
	}
	g.swap(gen, fresh)
	commit()
	return gen, nil
}

// Try builds a generation of c beside the running one, which is not to serve: what a reload would say.
func (g *Gateway) Try(c *conf.Config) (*Generation, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	return g.build(c, g.current.Load())
}

// Check builds a generation of c without a gateway that runs: what starting with it would say.
func Check(o Options, c *conf.Config) (*Generation, error) {
	g := &Gateway{opts: o, outbound: newOutbound(o.Log)}
	if g.opts.Metrics == nil {
		m, err := metrics.New(metrics.Options{})
		if err != nil {
			return nil, err
		}
		g.opts.Metrics = m
	}
	return g.build(c, nil)
}

// listen opens the addresses of c that are not open yet.
func (g *Gateway) listen(c *conf.Config) (map[string]*server.Listener, error) {
	fresh := map[string]*server.Listener{}
	var errs conf.Errors
	for i, place := range places(c) {
		l := &c.Listeners[i]
		if g.listeners[place] != nil {
			continue
		}
		open, err := g.opts.Passed.Listen(l.Address, fs.FileMode(l.Mode))
		if err != nil {
			errs.Add(l.Pos, "listener.address", "cannot listen on %s: %s", l.Address, cause(err))
			continue
		}
		fresh[place] = open
	}
	if err := errs.Err(); err != nil {
		closeAll(fresh)
		return nil, err
	}
	return fresh, nil
}

func cause(err error) error {
	if op, ok := err.(*net.OpError); ok {
		return op.Err
	}
	return err
}

func closeAll(list map[string]*server.Listener) {
	for _, l := range list {
		_ = l.Close()
	}
}

// swap makes a generation the one that serves, and lets go of what it does not need.
func (g *Gateway) swap(gen *Generation, fresh map[string]*server.Listener) {
	old := g.current.Load()
	for _, u := range gen.upstreams {
		u.Commit()
	}
	gen.commit()
	gen.metrics.Commit(gen)
	g.server.Apply(serverSettings(gen.config))
	g.current.Store(gen)
	g.changeListeners(gen, fresh)
	g.outbound.apply(gen.config, g.listening(gen.config))
	if g.running {
		g.watch(gen)
	}
	if old != nil {
		for name, u := range old.upstreams {
			u.Retire(gen.upstreams[name])
		}
		g.tunnels.reloaded(gen)
	}
}

func (g *Gateway) changeListeners(gen *Generation, fresh map[string]*server.Listener) {
	wanted := places(gen.config)
	for place, l := range g.listeners {
		if !slices.Contains(wanted, place) {
			_ = l.Close()
			delete(g.listeners, place)
		}
	}
	for place, l := range fresh {
		g.listeners[place] = l
	}
	for i, place := range wanted {
		l := &gen.config.Listeners[i]
		if open := g.listeners[place]; open != nil {
			open.Configure(server.Listening{Name: l.Name, Protocol: listenProtocols[l.Protocol], Proxies: proxies(l)}, gen.tls[place])
			if err := open.Chmod(fs.FileMode(l.Mode)); err != nil {
				g.opts.Log.Error("mode of a socket not changed", "listener", l.Address, "error", err)
			}
		}
	}
	for _, l := range fresh {
		if g.running {
			g.serve(l)
		}
	}
}

func (g *Gateway) serve(l *server.Listener) {
	g.serving.Go(func() { _ = g.server.Serve(l) })
}
