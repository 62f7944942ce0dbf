package route

import "bytes"

// The matcher's view of a path: a canonical path without ;parameters, in the normal form of RFC 3986 section 6.2.2: hexadecimal
// digits in capitals, and percent-encoding for every byte that a path may not have as it is. Most canonical paths are their own view.

// isView tells whether a canonical path is its own view.
func isView(path []byte) bool {
	for _, c := range path {
		if pathClass[c]&classPchar == 0 {
			return false
		}
	}
	return true
}

// appendView appends the view of a canonical path.
func appendView(dst, path []byte) []byte {
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case pathClass[c]&classPchar != 0:
			dst = append(dst, c)
		case c == ';':
			end := bytes.IndexByte(path[i:], '/')
			if end < 0 {
				return dst
			}
			i += end - 1
		case c == '%':
			if v, ok := unhex(path[i+1:]); ok {
				dst = append(dst, '%', upperHex[v>>4], upperHex[v&15])
				i += 2
			} else {
				dst = append(dst, "%25"...)
			}
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// cutParams is a segment without its ;parameters.
func cutParams(segment []byte) []byte {
	if i := bytes.IndexByte(segment, ';'); i >= 0 {
		return segment[:i]
	}
	return segment
}
