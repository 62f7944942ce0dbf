package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// Guard judges an address before it is connected to, after names were resolved; its error is what the dial ends with.
type Guard func(netip.AddrPort) error

// ErrShort means that this machine has no room for another connection: no descriptor or no memory. It says nothing about the endpoint.
var ErrShort = errors.New("no room for another connection")

// dial connects to host:port or unix:/path.
func dial(ctx context.Context, address string, guard Guard) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	var d net.Dialer
	if guard != nil {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return guard(netip.AddrPortFrom(resolved.Addr().Unmap(), resolved.Port()))
		}
	}
	nc, err := d.DialContext(ctx, network, address)
	if err != nil && short(err) {
		err = fmt.Errorf("%w: %w", ErrShort, err)
	}
	return nc, err
}

// short tells whether a dial has failed for want of room on this machine. Of a name that was not found for that reason the error does not tell, so it
// is seen whether there is room now.
func short(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsTimeout {
		var f *os.File
		if f, err = os.Open(os.DevNull); err == nil {
			_ = f.Close()
			return false
		}
	}
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}
