package luaapi

import (
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.delay: a decision that Go carries out when the stage's functions have run and the VM is back.

var delayFuncs = []vm.Func{
	{Name: "gw.delay", Phases: phaseRequest,
		Doc: "Holds the request back, or its answer when it is answered here: once the functions of the stage have run, it waits so long before it goes " +
			"on. No VM is held meanwhile; a client that leaves ends the wait. Delays of one stage add up, at most to `[scripts.delay] max`; beyond that it " +
			"raises. nil and why when too many requests are held back already.",
		Params:  list(p("time", "number|string", "seconds, or a text such as \"500ms\"")),
		Returns: list(p("ok", "true?", ""), errParam),
		Do:      delay},
}

func delay(a vm.Args) int {
	f := current(a.L)
	d, wrong := durationOf(a.Get(1))
	if wrong != "" {
		a.Bad(1, "seconds, or a text such as \"500ms\" expected, got %s", describe(a.Get(1)))
	}
	if most := f.m.stage.delay.Max; f.delay+d > most {
		a.Bad(1, "a stage delays a request by at most %s ([scripts.delay] max)", most)
	}
	if d > 0 && f.delay == 0 && !services(a).ReserveDelay() {
		return a.Fail("too many requests are delayed")
	}
	f.delay += d
	a.L.Push(lua.LTrue)
	return 1
}

// holdBack carries out what the filters of a stage have decided, when the VM is back. Whoever failed is not held back.
func (s *stage) holdBack(x *core.Exchange, d time.Duration, err error) error {
	if d == 0 {
		return err
	}
	if err != nil {
		_ = s.services.Delay(x, 0) // only frees the place
		return err
	}
	return s.services.Delay(x, d)
}
