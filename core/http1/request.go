package http1

import (
	"bytes"
	"net/netip"

	"github.com/moongate/moongate/core"
)

// Framing tells how a message's body lies on the wire and what becomes of the connection.
type Framing struct {
	Length  int64 // bytes of the body; -1 when only its coding or the connection's end tells
	Chunked bool
	Close   bool // no further message follows on this connection
	Upgrade bool // Connection names upgrade
}

// ParseRequest reads a head, as ReadRequestHead returned it, into r (RFC 9112 sections 3, 5 and 6). Names and values lie in the head.
// An error is a *core.Error with the status that answers it; what could be read of the request line stands in r all the same.
func ParseRequest(head []byte, r *core.Request) (Framing, error) {
	r.HeadSize = int64(len(head)) + 2
	line, fields := nextLine(head)
	if err := parseRequestLine(line, r); err != nil {
		return Framing{}, err
	}
	var f framing
	if err := parseFields(fields, &r.Header, &f); err != nil {
		return Framing{}, err
	}
	if err := checkHost(r, &f); err != nil {
		return Framing{}, err
	}
	if f.types > 1 {
		return Framing{}, errTwoTypes
	}
	if r.Header.GetKind(core.KindExpect) != nil {
		for _, f := range r.Header.Fields() {
			if f.Kind == core.KindExpect && !core.EqualFoldString(f.Value, "100-continue") {
				return Framing{}, errExpect
			}
		}
		r.Expect = r.Proto == core.HTTP11 && (f.chunked || f.length > 0)
	}
	return requestFraming(r, &f)
}

func parseRequestLine(line []byte, r *core.Request) error {
	i := bytes.IndexByte(line, ' ')
	if i <= 0 || !core.IsToken(line[:i]) {
		return errMethod
	}
	r.Method = methodName(line[:i])
	rest := line[i+1:]
	j := bytes.LastIndexByte(rest, ' ')
	if j <= 0 {
		return errRequestLine
	}
	target, version := rest[:j], rest[j+1:]
	for _, c := range target {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return errTarget
		}
	}
	if err := parseVersion(version, r); err != nil {
		return err
	}
	return parseTarget(target, r)
}

func parseVersion(b []byte, r *core.Request) error {
	if len(b) != 8 || string(b[:5]) != "HTTP/" || b[6] != '.' || !digit(b[5]) || !digit(b[7]) {
		return errRequestLine
	}
	switch {
	case b[5] != '1' || b[7] > '1':
		return errVersion
	case b[7] == '1':
		r.Proto = core.HTTP11
	default:
		r.Proto = core.HTTP10
	}
	return nil
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// parseTarget takes origin-form, absolute-form and, for OPTIONS, asterisk-form (RFC 9112 section 3.2).
func parseTarget(t []byte, r *core.Request) error {
	switch {
	case r.Method == "CONNECT":
		return errNoConnect
	case r.Method == "TRACE":
		return errNoTrace
	case t[0] == '/':
	case len(t) == 1 && t[0] == '*' && r.Method == "OPTIONS":
		r.RawPath = t
		return nil
	default:
		rest, ok := cutScheme(t)
		if !ok {
			return errTarget
		}
		end := bytes.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 || !validHost(rest[:end]) {
			return errTarget
		}
		r.Host = rest[:end]
		switch t = rest[end:]; {
		case len(t) == 0 && r.Method == "OPTIONS": // it asks about the whole server (RFC 9112 section 3.2.4)
			r.RawPath = []byte{'*'}
			return nil
		case len(t) == 0 || t[0] == '?':
			t = append([]byte{'/'}, t...)
		}
	}
	r.RawPath = t
	if q := bytes.IndexByte(t, '?'); q >= 0 {
		r.RawPath, r.RawQuery, r.HasQuery = t[:q], t[q+1:], true
	}
	return nil
}

func cutScheme(t []byte) ([]byte, bool) {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(t) > len(scheme) && core.EqualFoldString(t[:len(scheme)], scheme) {
			return t[len(scheme):], true
		}
	}
	return nil, false
}

// checkHost settles the request's authority (RFC 9112 section 3.2): exactly one well-formed Host in HTTP/1.1; an absolute target wins over it.
func checkHost(r *core.Request, f *framing) error {
	if f.hosts > 1 || f.hosts == 0 && r.Proto == core.HTTP11 {
		return errHost
	}
	host := r.Header.GetKind(core.KindHost)
	if len(host) > 0 && !validHost(host) {
		return errHost
	}
	if r.Host == nil {
		if len(host) == 0 && r.Proto == core.HTTP11 {
			return errHost
		}
		r.Host = host
	}
	return nil
}

// validHost accepts uri-host [":" port] of RFC 3986 section 3.2.2 without user information.
func validHost(b []byte) bool {
	host, port := b, []byte(nil)
	if b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 3 || bytes.IndexByte(b[:end], '%') >= 0 { // a zone is of no use to others (RFC 9844)
			return false
		}
		if a, err := netip.ParseAddr(string(b[1:end])); err != nil || !a.Is6() {
			return false
		}
		if port = b[end+1:]; len(port) > 0 && port[0] != ':' {
			return false
		}
	} else {
		if i := bytes.IndexByte(b, ':'); i >= 0 {
			host, port = b[:i], b[i:]
		}
		if len(host) == 0 {
			return false
		}
		for i, c := range host {
			if c == '%' && !(i+2 < len(host) && hexDigit(host[i+1]) && hexDigit(host[i+2])) || c != '%' && !hostByte[c] {
				return false
			}
		}
	}
	if len(port) > 6 {
		return false
	}
	for i, c := range port {
		if i > 0 && !digit(c) {
			return false
		}
	}
	return true
}

// hostByte marks unreserved and sub-delims of RFC 3986.
var hostByte = func() (t [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=" {
		t[c] = true
	}
	return t
}()

func hexDigit(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// requestFraming settles the body's length (RFC 9112 section 6.3).
func requestFraming(r *core.Request, f *framing) (Framing, error) {
	out := Framing{Length: max(f.length, 0), Upgrade: f.upgrade}
	out.Close = f.close || r.Proto == core.HTTP10 && !f.keepAlive
	if f.chunked || f.unknownCoding {
		switch {
		case f.length >= 0:
			return out, errTwoFramings
		case r.Proto == core.HTTP10:
			return out, errTransferEncoding
		case f.unknownCoding:
			return out, unknownCoding(r)
		}
		out.Chunked, out.Length = true, -1
	}
	return out, nil
}

// unknownCoding tells a coding that we do not have (501) from a field that is no coding at all (400).
func unknownCoding(r *core.Request) error {
	for item, rest := core.NextItem(r.Header.GetKind(core.KindTransferEncoding)); item != nil; item, rest = core.NextItem(rest) {
		name, _, _ := bytes.Cut(item, []byte{';'})
		if name = core.Trim(name); !core.IsToken(name) || core.EqualFoldString(name, "chunked") && len(rest) > 0 {
			return errTransferEncoding
		}
	}
	return errUnknownCoding
}

// methodName avoids an allocation for the methods that everybody uses.
func methodName(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "PUT":
		return "PUT"
	case "HEAD":
		return "HEAD"
	case "DELETE":
		return "DELETE"
	case "OPTIONS":
		return "OPTIONS"
	case "PATCH":
		return "PATCH"
	}
	return string(b)
}
