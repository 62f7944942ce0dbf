package gateway

import (
	"time"

	"github.com/moongate/moongate/core"
)

// ReserveDelay implements core.Services.
func (g *Generation) ReserveDelay() bool {
	o := g.outbound
	if o.delayed.Add(1) > int64(g.config.Scripts.Delay.InFlight) {
		o.delayed.Add(-1)
		o.delaysRefused.Add(1)
		return false
	}
	return true
}

// Delay implements core.Services. Requests that are held back are in flight: a gateway that drains lets them end as all others.
func (g *Generation) Delay(x *core.Exchange, d time.Duration) error {
	defer g.outbound.delayed.Add(-1)
	if d <= 0 {
		return nil
	}
	g.outbound.delays.Add(1)
	left := make(departure)
	if !x.Lifeline.Watch(left) {
		return errLeft
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-left:
	}
	if !x.Lifeline.Unwatch() {
		return errLeft
	}
	return nil
}

var errLeft = core.Fail(core.StatusClientGone, "client left", nil)

// departure is closed when a client leaves.
type departure chan struct{}

// Cut implements core.Cutter.
func (d departure) Cut() { close(d) }
