package route

import (
	"net/netip"

	"github.com/moongate/moongate/core"
)

// client asks for a client's address within some networks.
type client []netip.Prefix

func (c client) cost() int { return costClient + len(c) }

func (c client) holds(x *core.Exchange) bool {
	ip := x.Request.ClientIP.Unmap().WithZone("")
	for _, p := range c {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

func (c client) sign() string {
	var list []string
	for _, p := range c {
		list = append(list, p.String())
	}
	return signSet(list)
}

func newClient(list []string) (client, error) {
	var c client
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			addr, err := netip.ParseAddr(s)
			if err != nil || addr.Zone() != "" {
				return nil, wrong("client", "%q is no CIDR such as \"10.0.0.0/8\" and no address", s)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		c = append(c, p.Masked())
	}
	return c, nil
}
