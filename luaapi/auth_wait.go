package luaapi

import (
	"context"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// waiter lets verifiers wait while the VM counts against no pool. It implements auth.Waiter.
type waiter struct {
	vm *vm.VM
	x  *core.Exchange // nil: nobody can leave
}

// waiterOf is the machine's waiter for the exchange in work.
func waiterOf(v *vm.VM, x *core.Exchange) *waiter {
	w := &v.Data.(*machine).waiter
	w.vm, w.x = v, x
	return w
}

// Wait implements auth.Waiter. The context ends when the client leaves.
func (w *waiter) Wait(do func(ctx context.Context)) error {
	return w.vm.Wait(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if w.x != nil {
			if !w.x.Lifeline.Hold(cutter(cancel)) {
				cancel()
			}
			defer w.x.Lifeline.Release()
		}
		do(ctx)
	})
}

// cutter ends a context when the client has left.
type cutter context.CancelFunc

// Cut implements core.Cutter.
func (c cutter) Cut() { c() }
