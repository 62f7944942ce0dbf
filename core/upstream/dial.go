package upstream

import (
	"context"
	"net"
	"strings"
)

// dial connects to host:port or unix:/path.
func dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
