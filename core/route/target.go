package route

import (
	"bytes"
	"strings"

	"github.com/moongate/moongate/core"
)

// Target is the path that goes upstream: rawPath without what the route strips, then rewritten, and byte for byte as it came
// otherwise. rawPath is what [Path.Under] gave and path the canonical form that was matched; neither is changed. The result is part
// of rawPath where nothing is rewritten, else it lies in buf if that is large enough; buf does not overlap the others. It always starts with a slash, except that "*"
// stays what it is.
//
// A route that forwards paths as they came (core.PathRaw) and also strips or rewrites them sends what is left of the resolved path:
// a prefix that was matched exists only there.
func Target(rt *core.Route, rawPath, path, buf []byte) []byte {
	if rt.StripSegments == 0 && rt.StripPrefix == "" && rt.Rewrite == nil || len(rawPath) == 0 || rawPath[0] != '/' {
		return rawPath
	}
	if rt.Path == core.PathRaw && !plain(rawPath) {
		if p, err := Canonical(rawPath, nil); err == nil && p.fault != nil {
			rawPath, path = p.sent, p.Seen
		}
	}
	n := rt.StripSegments
	if rt.StripPrefix != "" {
		n = prefixLength(rt.StripPrefix, path)
	}
	rawPath, path = strip(rawPath, n), strip(path, n)
	if rt.Rewrite == nil {
		return rawPath
	}
	return rewrite(rt, rawPath, path, buf)
}

// strip takes n leading segments from a path.
func strip(path []byte, n int) []byte {
	for ; n > 0; n-- {
		end := bytes.IndexByte(path[1:], '/')
		if end < 0 {
			return rootPath
		}
		path = path[1+end:]
	}
	return path
}

// prefixLength is the number of segments in prefix if path starts with all of them, else 0.
func prefixLength(prefix string, path []byte) int {
	n := 0
	for _, want := range strings.Split(strings.Trim(prefix, "/"), "/") {
		if len(path) == 0 {
			return 0
		}
		path = path[1:]
		end := segmentEnd(path)
		if !sameSegment(path[:end], want) {
			return 0
		}
		path = path[end:]
		n++
	}
	return n
}

// sameSegment compares a canonical segment with a literal of the configuration.
func sameSegment(segment []byte, want string) bool {
	segment = cutParams(segment)
	if string(segment) == want {
		return true
	}
	return string(appendView(nil, segment)) == normal(string(decode(nil, core.Bytes(want))))
}

// rewrite replaces every match of the route's pattern. The pattern sees the canonical path, so that no encoding escapes it; what it
// did not match and what its groups hold goes out in the bytes that came.
func rewrite(rt *core.Route, rawPath, path, buf []byte) []byte {
	found := rt.Rewrite.FindAllSubmatchIndex(path, -1)
	if len(found) == 0 {
		return rawPath
	}
	buf = buf[:0]
	done := 0
	for _, m := range found {
		for i, at := range m {
			m[i] = rawOffset(rawPath, at)
		}
		buf = append(buf, rawPath[done:m[0]]...)
		buf = rt.Rewrite.Expand(buf, core.Bytes(rt.RewriteTo), rawPath, m)
		done = m[1]
	}
	buf = append(buf, rawPath[done:]...)
	if len(buf) == 0 || buf[0] != '/' {
		buf = append(buf, 0)
		copy(buf[1:], buf)
		buf[0] = '/'
	}
	return buf
}

// rawOffset is the place in a raw path of an offset in its canonical form; -1 stays -1.
func rawOffset(raw []byte, at int) int {
	if at < 0 {
		return -1
	}
	i := 0
	for n := 0; n < at && i < len(raw); i++ {
		n++
		if raw[i] != '%' {
			continue
		}
		switch v, ok := unhex(raw[i+1:]); {
		case !ok:
			n += 2
		case pathClass[v]&classUnreserved != 0:
			i += 2
		}
	}
	return i
}
