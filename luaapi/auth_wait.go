package luaapi

import (
	"context"

	"github.com/moongate/moongate/luaapi/vm"
)

// waiter lets verifiers wait as all that waits outside does. It implements auth.Waiter.
type waiter struct{ call vm.Args }

// waiterOf is the machine's waiter, for a call that a verifier is asked in.
func waiterOf(a vm.Args) *waiter {
	w := &a.VM.Data.(*machine).waiter
	w.call = a
	return w
}

// Wait implements auth.Waiter. When the client has left it raises: the exchange ends.
func (w *waiter) Wait(do func(ctx context.Context)) error { return outside(w.call, 0, do) }
