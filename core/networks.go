package core

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Networks is a set of IP networks. It is immutable and safe for concurrent use; asking it costs a binary search over ranges that do not
// overlap, whatever the number of networks (BenchmarkNetworks), and allocates nothing. The zero value is empty.
type Networks struct {
	v4 []span[uint32]
	v6 []span[wide]
}

// span is a range of addresses, both ends in it.
type span[T any] struct{ from, to T }

// wide is an IPv6 address as two halves.
type wide struct{ high, low uint64 }

func (a wide) compare(b wide) int {
	switch {
	case a.high != b.high && a.high < b.high, a.high == b.high && a.low < b.low:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// NewNetworks makes a set. Networks may overlap and come in any order; those of IPv4 written as IPv6 (::ffff:192.0.2.0/120) count as IPv4.
// Networks that are not valid are left out.
func NewNetworks(list []netip.Prefix) *Networks {
	n := &Networks{}
	for _, p := range list {
		if !p.IsValid() {
			continue
		}
		p = p.Masked()
		address, size := p.Addr(), p.Bits()
		if address.Is4In6() && size >= 96 {
			address, size = address.Unmap(), size-96
		}
		if address.Is4() {
			from := narrow(address)
			n.v4 = append(n.v4, span[uint32]{from, from | uint32(uint64(1)<<(32-size)-1)})
			continue
		}
		from := widen(address)
		to := from
		if size < 64 {
			to.high, to.low = from.high|^uint64(0)>>size, ^uint64(0)
		} else if size < 128 {
			to.low |= ^uint64(0) >> (size - 64)
		}
		n.v6 = append(n.v6, span[wide]{from, to})
	}
	n.v4 = merge(n.v4, func(a, b uint32) int { return int(min(1, max(-1, int64(a)-int64(b)))) })
	n.v6 = merge(n.v6, wide.compare)
	return n
}

// merge sorts spans and joins those that overlap.
func merge[T any](list []span[T], compare func(a, b T) int) []span[T] {
	slices.SortFunc(list, func(a, b span[T]) int { return compare(a.from, b.from) })
	var joined []span[T]
	for _, s := range list {
		if last := len(joined) - 1; last >= 0 && compare(s.from, joined[last].to) <= 0 {
			if compare(s.to, joined[last].to) > 0 {
				joined[last].to = s.to
			}
			continue
		}
		joined = append(joined, s)
	}
	return slices.Clip(joined)
}

// Contains tells whether an address lies in one of the networks. IPv4 written as IPv6 counts as IPv4, zones do not matter, and the zero
// Addr lies nowhere.
func (n *Networks) Contains(address netip.Addr) bool {
	switch {
	case !address.IsValid():
		return false
	case address.Is4() || address.Is4In6():
		return n.has4(narrow(address.Unmap()))
	}
	return n.has6(widen(address))
}

// has4 halves the list without a branch that depends on what it finds, which a processor would guess wrong half of the time.
func (n *Networks) has4(a uint32) bool {
	list := n.v4
	if len(list) == 0 {
		return false
	}
	at := 0
	for rest := len(list); rest > 1; {
		half := rest >> 1
		next := at
		if list[at+half-1].to < a {
			next = at + half
		}
		at = next
		rest -= half
	}
	return list[at].from <= a && a <= list[at].to
}

func (n *Networks) has6(a wide) bool {
	list := n.v6
	if len(list) == 0 {
		return false
	}
	at := 0
	for rest := len(list); rest > 1; {
		half := rest >> 1
		next := at
		if to := &list[at+half-1].to; to.high < a.high || to.high == a.high && to.low < a.low {
			next = at + half
		}
		at = next
		rest -= half
	}
	return list[at].from.compare(a) <= 0 && a.compare(list[at].to) <= 0
}

// Len is the number of ranges that are left after those that overlap were joined.
func (n *Networks) Len() int { return len(n.v4) + len(n.v6) }

func narrow(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func widen(a netip.Addr) wide {
	b := a.As16()
	return wide{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// ParseNetwork reads a network such as 10.0.0.0/8 or fd00::/8; an address alone is a network of one. Bits beyond the mask fall away.
func ParseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no network: write 10.0.0.0/8, fd00::/8 or an address", text)
	}
	return p.Masked(), nil
}

// ParseNetworks reads a text with one network a line, as lists of networks are published: empty lines and what follows a # do not count.
// The error names the line.
func ParseNetworks(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		p, err := ParseNetwork(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		list = append(list, p)
	}
	return list, nil
}
