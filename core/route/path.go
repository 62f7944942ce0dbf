package route

import (
	"bytes"

	"github.com/moongate/moongate/core"
)

// Path is a request's path in its three forms.
type Path struct {
	Seen []byte // canonical: what matcher and scripts see

	raw   []byte      // as it came
	sent  []byte      // as it came, but resolved
	fault *core.Error // why the strict policy refuses it; nil when there is nothing to resolve
}

// Under applies a policy: it returns the raw path that goes on, or an error of status 400. PathStrict passes only a path that has
// nothing to resolve, PathNormalise gives the resolved one, PathRaw the one that came.
func (p *Path) Under(policy core.PathPolicy) ([]byte, error) {
	switch {
	case p.fault == nil || policy == core.PathRaw:
		return p.raw, nil
	case policy == core.PathNormalise:
		return p.sent, nil
	}
	return nil, p.fault
}

var (
	errNotAPath  = core.Fail(400, "path does not start with a slash", nil)
	errByte      = core.Fail(400, "path has a byte that no path may have", nil)
	errHidden    = core.Fail(400, "path hides a dot segment", nil)
	errDots      = core.Fail(400, "path has a dot segment", nil)
	errEmpty     = core.Fail(400, "path has an empty segment", nil)
	errBackslash = core.Fail(400, "path has a backslash", nil)
	errPercent   = core.Fail(400, "path has an invalid percent-encoding", nil)
	errNull      = core.Fail(400, "path has an encoded NUL", nil)
)

// Canonical reads a raw path: what came between authority and question mark. Seen is that path with percent-encoded unreserved
// characters decoded once (RFC 3986 section 6.2.2.2) and dot segments and empty segments resolved (section 5.2.4). All other
// percent-encodings stay as they came, %2F among them. Segments keep their ;parameters, but a segment is judged without them:
// "/..;x/" is a dot segment and "/;x/" an empty one. A backslash counts as a slash. An invalid percent sign reads as %25.
//
// What had to be resolved is for [Path.Under] to judge, when the route and so the policy is known. Errors are of status 400 and hold
// under every policy: control characters, space, '?', '#', and dots beside an encoded slash, backslash, semicolon or NUL, which one
// reader would resolve and another would not. Bytes above 0x7f pass. An empty path is "/", and "*" is left alone.
//
// Nothing is copied where nothing changes. Otherwise the results lie in buf if it is large enough, which a capacity of 4*len(raw)+2
// always is.
func Canonical(raw, buf []byte) (Path, error) {
	if plain(raw) {
		return Path{Seen: raw, raw: raw}, nil
	}
	return canonicalSlow(raw, buf)
}

// plain tells whether a path is canonical at first sight.
func plain(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '/' {
		return false
	}
	slash := false
	for _, c := range raw {
		k := pathClass[c]
		if k&classStop != 0 || slash && k&classStart != 0 {
			return false
		}
		slash = c == '/'
	}
	return true
}

func canonicalSlow(raw, buf []byte) (Path, error) {
	switch {
	case len(raw) == 0:
		raw = rootPath
		return Path{Seen: raw, raw: raw}, nil
	case len(raw) == 1 && raw[0] == '*':
		return Path{Seen: raw, raw: raw}, nil
	case raw[0] != '/':
		return Path{}, errNotAPath
	}
	p := Path{raw: raw, sent: raw}
	encoded := false
	for i := 1; i <= len(raw); {
		end := i + segmentEnd(raw[i:])
		s, err := inspect(raw[i:end])
		if err != nil {
			return Path{}, err
		}
		encoded = encoded || s.encoded
		if fault := s.fault(end == len(raw)); fault != nil && p.fault == nil {
			p.fault = fault
		}
		if end < len(raw) && raw[end] == '\\' && p.fault == nil {
			p.fault = errBackslash
		}
		i = end + 1
	}
	buf = buf[:0]
	if p.fault != nil {
		buf = resolve(buf, raw)
		p.sent = buf
	}
	p.Seen = p.sent
	if encoded {
		n := len(buf)
		buf = decode(buf, p.sent)
		p.Seen = buf[n:]
	}
	return p, nil
}

var rootPath = []byte("/")

// resolve appends a raw path without dot segments and empty segments (RFC 3986 section 5.2.4). What it keeps, it keeps byte for
// byte.
func resolve(dst, raw []byte) []byte {
	start := len(dst)
	for i := 1; i <= len(raw); {
		end := i + segmentEnd(raw[i:])
		last := end == len(raw)
		s, _ := inspect(raw[i:end])
		switch {
		case s.dots == 2:
			if at := bytes.LastIndexByte(dst[start:], '/'); at >= 0 {
				dst = dst[:start+at]
			}
			fallthrough
		case s.dots == 1, s.bare && !(last && s.params):
			if last {
				dst = append(dst, '/')
			}
		default:
			dst = append(dst, '/')
			dst = append(dst, raw[i:end]...)
		}
		i = end + 1
	}
	return dst
}

// decode appends a raw path with its percent-encoded unreserved characters decoded.
func decode(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '%' {
			dst = append(dst, c)
			continue
		}
		switch v, ok := unhex(raw[i+1:]); {
		case !ok:
			dst = append(dst, "%25"...)
		case pathClass[v]&classUnreserved != 0:
			dst = append(dst, v)
			i += 2
		default:
			dst = append(dst, raw[i:i+3]...)
			i += 2
		}
	}
	return dst
}
