package server

import (
	"time"

	"github.com/moongate/moongate/core"
)

// A client that leaves shall not keep an upstream busy. Asking about each request would cost each of them; so a sweeper looks now and then
// for requests that take long, and only for those the kernel is asked to tell when the client closes its end. One that has closed
// its sending half counts as gone, as with other gateways.

const (
	sweepEvery = 25 * time.Millisecond
	watchAfter = 50 * time.Millisecond // age from which a request is watched
)

// sweep arms the watcher for requests that have become old.
func (w *watcher) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-tick.C:
		}
		if w.srv.inFlight.Load() == 0 {
			continue
		}
		now := core.Now()
		w.srv.each(func(c *client) {
			if began := c.began.Load(); began != 0 && began != c.armed && now.Sub(core.Instant(began)) >= watchAfter {
				c.armed = began
				w.arm(c)
			}
		})
	}
}
