package proxyproto

import (
	"bytes"
	"io"
	"net/netip"
	"strconv"
)

const (
	prefix = "PROXY "
	maxV1  = 107 // section 2.1: with its CRLF
)

// readV1 reads the rest of a line, byte by byte: what is behind it belongs to somebody else.
func readV1(r io.Reader, begun [first]byte) (Header, error) {
	var room [maxV1]byte
	n := copy(room[:], begun[:])
	if bytes.IndexByte(room[:n], '\n') >= 0 {
		return Header{}, ErrMalformed
	}
	for room[n-1] != '\n' {
		if n == maxV1 {
			return Header{}, ErrTooLong
		}
		if _, err := io.ReadFull(r, room[n:n+1]); err != nil {
			return Header{}, err
		}
		n++
	}
	line, ok := bytes.CutSuffix(room[len(prefix):n], []byte("\r\n"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return Header{}, ErrMalformed
	}
	return parseV1(string(line))
}

// parseV1 reads PROTOCOL SP SOURCE SP DESTINATION SP PORT SP PORT, or UNKNOWN and whatever follows.
func parseV1(line string) (Header, error) {
	word, rest := cut(line)
	if word == "UNKNOWN" {
		return Header{}, nil
	}
	if word != "TCP4" && word != "TCP6" {
		return Header{}, ErrMalformed
	}
	var fields [4]string
	for i := range fields {
		if rest == "" {
			return Header{}, ErrMalformed
		}
		fields[i], rest = cut(rest[1:])
	}
	source, ok1 := address(fields[0], fields[2], word == "TCP4")
	destination, ok2 := address(fields[1], fields[3], word == "TCP4")
	if rest != "" || !ok1 || !ok2 {
		return Header{}, ErrMalformed
	}
	return Header{source, destination}, nil
}

// cut takes the text up to the next space; the rest begins with it.
func cut(s string) (word, rest string) {
	for i := range len(s) {
		if s[i] == ' ' {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func address(host, port string, four bool) (netip.AddrPort, bool) {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Is4() != four || addr.Zone() != "" {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || len(port) > 1 && port[0] == '0' || port[0] == '+' {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), true
}

func (h Header) appendV1(dst []byte) []byte {
	dst = append(dst, prefix...)
	if !h.Known() {
		return append(dst, "UNKNOWN\r\n"...)
	}
	source, destination := h.ends()
	if source.Is4() {
		dst = append(dst, "TCP4 "...)
	} else {
		dst = append(dst, "TCP6 "...)
	}
	dst = append(source.AppendTo(dst), ' ')
	dst = append(destination.AppendTo(dst), ' ')
	dst = strconv.AppendUint(dst, uint64(h.Source.Port()), 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(h.Destination.Port()), 10)
	return append(dst, "\r\n"...)
}
