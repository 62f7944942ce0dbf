package route

import (
	"slices"

	"github.com/moongate/moongate/core"
)

// listener asks for a connection that came to one of some listeners.
type listener []string

func (l listener) cost() int { return costListener }

func (l listener) holds(x *core.Exchange) bool { return slices.Contains(l, x.Request.Listener) }
