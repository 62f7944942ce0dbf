//go:build !linux

package http1

import (
	"errors"

	"github.com/moongate/moongate/core"
)

type splicer struct{}

// spliceable: only Linux moves bytes between sockets in the kernel.
func spliceable(*Conn, *core.Body) (*splicer, *BodyReader) { return nil, nil }

func (*splicer) splice([]byte, *BodyReader, *core.Body) (int64, error) {
	return 0, errors.ErrUnsupported
}
