package gateway

import (
	"errors"
	"net"
	"net/netip"
)

// What a URL of a script may lead to. A script that makes a URL of what a client says must not open what is inside to everybody.

var (
	errPrivate = errors.New("the URL leads to an address that is not public: give it an [[upstream]], or its network to [scripts.http] allow")
	errOwn     = errors.New("the URL leads back into this gateway")
)

// guard is an upstream.Guard.
func (o *outbound) guard(at netip.AddrPort) error {
	rules := o.rules.Load()
	if !rules.loops && rules.leadsHome(at) {
		return errOwn
	}
	for _, p := range rules.allow {
		if p.Contains(at.Addr()) {
			return nil
		}
	}
	if !public(at.Addr()) {
		return errPrivate
	}
	return nil
}

// reserved are the networks that nobody reaches over the internet, beside those that netip knows (RFC 6890, and RFC 6052 and 3056, which
// carry addresses of IPv4).
var reserved = func() (list []netip.Prefix) {
	for _, text := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10"} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

// public tells whether an address is one of the internet's.
func public(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// leadsHome tells whether this process listens there.
func (r *outboundRules) leadsHome(at netip.AddrPort) bool {
	for _, own := range r.own {
		if own.Port() != at.Port() {
			continue
		}
		if addr := own.Addr().Unmap(); addr == at.Addr() || addr.IsUnspecified() && ofThisMachine(at.Addr()) || at.Addr().IsUnspecified() {
			return true
		}
	}
	return false
}

// ofThisMachine tells whether an address leads to the machine itself. When the machine does not say, it does.
func ofThisMachine(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, item := range list {
		if p, err := netip.ParsePrefix(item.String()); err == nil && p.Addr().Unmap().WithZone("") == a.WithZone("") {
			return true
		}
	}
	return false
}
