package luaapi

import (
	"bytes"
	"strings"
)

// decodesTo tells whether an encoded name stands for key.
func decodesTo(name []byte, key string) bool {
	if bytes.IndexByte(name, '%') < 0 && bytes.IndexByte(name, '+') < 0 {
		return string(name) == key
	}
	return decoded(name) == key
}

// decoded is a form-encoded text decoded; one that cannot be is given as it is.
func decoded(b []byte) string {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '+':
			out = append(out, ' ')
		case '%':
			v, ok := hexPair(b, i+1)
			if !ok {
				return string(b)
			}
			out = append(out, v)
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func hexPair[T string | []byte](b T, i int) (byte, bool) {
	if i+2 > len(b) {
		return 0, false
	}
	hi, lo := strings.IndexByte(hexDigits, b[i]|0x20), strings.IndexByte(hexDigits, b[i+1]|0x20)
	if b[i] <= '9' {
		hi = strings.IndexByte(hexDigits[:10], b[i])
	}
	if b[i+1] <= '9' {
		lo = strings.IndexByte(hexDigits[:10], b[i+1])
	}
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

const hexDigits = "0123456789abcdef"

// Bytes that may stand unencoded (RFC 3986): unreserved anywhere, more in a path, in a query, in a whole URL and before its host.
var unreserved, pathByte, queryByte, urlByte, userByte = func() (u, p, q, w, n [256]byte) {
	mark := func(set string, tables ...*[256]byte) {
		for i := range len(set) {
			for _, t := range tables {
				t[set[i]] = 1
			}
		}
	}
	mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", &u, &p, &q, &w, &n)
	mark("!$&'()*+,;=:@/", &p, &q, &w)
	mark("!$&'()*+,;=:", &n)
	mark("?#[]", &w)
	mark("?[]{}|\\^\"<>`", &q) // browsers send them raw; upstreams have seen worse
	return u, p, q, w, n
}()

// rawQueryByte is queryByte for a query as it stands, in which a lone % has been seen too.
var rawQueryByte = func() [256]byte {
	t := queryByte
	t['%'] = 1
	return t
}()

const upperHex = "0123456789ABCDEF"

// appendEncoded percent-encodes all but unreserved bytes.
func appendEncoded(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; unreserved[c] != 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// appendEscaped percent-encodes what may not stand and leaves what is encoded already.
func appendEscaped(dst []byte, s string, may *[256]byte) []byte {
	for i := range len(s) {
		c := s[i]
		if _, encoded := hexPair(s, i+1); may[c] != 0 || c == '%' && encoded {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}
