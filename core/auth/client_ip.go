package auth

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/moongate/moongate/core"
)

// ClientIP finds the client of a request. It is the peer, unless the peer is a trusted proxy: then the X-Forwarded-For lines,
// joined in their order, are walked from the right, and the first address that is not trusted is the client. An entry that is
// no address ends the walk: the client is the last address understood. So it is when all are trusted: the leftmost one.
//
// A peer without an address, over a Unix socket, is taken as trusted: the caller decides whether it is.
//
// Entries are IPv4 or IPv6 addresses, with or without a port, IPv6 in brackets or bare. Addresses are compared and returned
// unmapped (::ffff:192.0.2.1 is 192.0.2.1). Nothing is allocated, and no line is kept.
func ClientIP(peer netip.Addr, trusted []netip.Prefix, lines [][]byte) netip.Addr {
	client := peer.Unmap().WithZone("")
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; len(rest) > 0; {
			if client.IsValid() && !isTrusted(client, trusted) {
				return client
			}
			var entry []byte
			if entry, rest = lastItem(rest); len(entry) == 0 {
				continue
			}
			next, ok := parseAddr(entry)
			if !ok {
				return client
			}
			client = next
		}
	}
	return client
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// lastItem splits a list at its last comma.
func lastItem(list []byte) (item, rest []byte) {
	i := len(list)
	for i > 0 && list[i-1] != ',' {
		i--
	}
	return core.Trim(list[i:]), list[:max(i-1, 0)]
}

// parseAddr reads an address that a port may follow.
func parseAddr(entry []byte) (addr netip.Addr, ok bool) {
	text := unsafe.String(unsafe.SliceData(entry), len(entry)) // parsed, not kept
	var err error
	switch bracketed := text[0] == '['; {
	case bracketed && text[len(text)-1] == ']':
		addr, err = netip.ParseAddr(text[1 : len(text)-1])
		ok = err == nil && addr.Is6()
	case bracketed || bytes.Count(entry, []byte{':'}) == 1:
		var both netip.AddrPort
		both, err = netip.ParseAddrPort(text)
		addr, ok = both.Addr(), err == nil
	default:
		addr, err = netip.ParseAddr(text)
		ok = err == nil
	}
	return addr.Unmap(), ok && addr.Zone() == ""
}
