package upstream

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// Guard judges an address before it is connected to, after names were resolved; its error is what the dial ends with.
type Guard func(netip.AddrPort) error

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
	return d.DialContext(ctx, network, address)
}
