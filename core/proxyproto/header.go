// Package proxyproto reads and writes the PROXY protocol, versions 1 and 2: what a proxy in front tells about a connection before the
// connection's own first byte (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). It answers one question: whose connection is it?
//
// [Read] takes exactly the header off a stream, and nothing behind it, so that whoever goes on reading needs no buffer of its. It is
// strict: a header that is not well-formed to the last byte is an error, and the stream is then of no use.
package proxyproto

import (
	"errors"
	"io"
	"net/netip"
)

// Header is what a proxy says of a connection. The zero value says nothing: the connection is the proxy's own (a check of health), or the
// proxy does not know.
type Header struct {
	Source      netip.AddrPort // who opened it; IPv4 as such
	Destination netip.AddrPort // what was connected to
}

// Known tells whether the header names the two ends.
func (h Header) Known() bool { return h.Source.Addr().IsValid() && h.Destination.Addr().IsValid() }

// The versions.
const (
	V1 = 1 // a line of text
	V2 = 2 // binary
)

// What may be wrong with a header.
var (
	ErrMissing   = errors.New("no PROXY header")
	ErrMalformed = errors.New("malformed PROXY header")
	ErrTooLong   = errors.New("PROXY header too long")
)

// first is how many bytes decide between the versions; both headers have more.
const first = 12

// Read reads a header of either version. The error is one of this package's, or the stream's.
func Read(r io.Reader) (Header, error) {
	var b [first]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return Header{}, err
	}
	if b[0] != signature[0] && b[0] != prefix[0] { // a client that says something else may never say more
		return Header{}, ErrMissing
	}
	if _, err := io.ReadFull(r, b[1:]); err != nil {
		return Header{}, err
	}
	switch {
	case string(b[:]) == signature:
		return readV2(r)
	case string(b[:len(prefix)]) == prefix:
		return readV1(r, b)
	}
	return Header{}, ErrMissing
}

// Append appends the header in that version. An IPv4 and an IPv6 end are both written as IPv6.
func (h Header) Append(dst []byte, version int) []byte {
	if version == V1 {
		return h.appendV1(dst)
	}
	return h.appendV2(dst)
}

// ends are the two addresses in one family.
func (h Header) ends() (source, destination netip.Addr) {
	source, destination = h.Source.Addr().Unmap().WithZone(""), h.Destination.Addr().Unmap().WithZone("")
	if source.Is4() != destination.Is4() {
		source, destination = netip.AddrFrom16(source.As16()), netip.AddrFrom16(destination.As16())
	}
	return source, destination
}
