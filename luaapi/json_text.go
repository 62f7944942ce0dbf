package luaapi

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// text reads a string; what it gives holds until the next call. The string must be UTF-8 without control characters and lone
// surrogates.
func (r *jsonReader) text() ([]byte, bool) {
	start := r.pos + 1
	ascii := true
	for i := start; i < len(r.in); {
		if i += plainLength(r.in[i:]); i == len(r.in) {
			break
		}
		switch c := r.in[i]; {
		case c == '"':
			r.pos = i + 1
			if s := r.in[start:i]; ascii || utf8.Valid(s) {
				return s, true
			}
			r.pos = start
			r.fail("a string that is not UTF-8")
			return nil, false
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			r.pos = i
			r.fail("a control character in a string")
			return nil, false
		}
		for ascii = false; i < len(r.in) && r.in[i] >= utf8.RuneSelf; i++ {
		}
	}
	r.pos = len(r.in)
	r.fail("a string without its end")
	return nil, false
}

// plainLength is how many bytes of b stand for themselves in a string: ASCII but for quotes, backslashes and control characters. It looks
// at eight at a time (BenchmarkJSONGetAtTheEnd).
func plainLength(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if odd := oddBytes(binary.LittleEndian.Uint64(b[i:])); odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// oddBytes has the top bit of the first of eight bytes set, in the order of the text, that does not stand for itself in a string; of the
// bytes behind that it tells nothing. In those before it no subtraction borrows.
func oddBytes(x uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	return (x | (x - ones*' ') | (x ^ ones*'"' - ones) | (x ^ ones*'\\' - ones)) & tops
}

// escaped reads a string whose first escape stands at i.
func (r *jsonReader) escaped(start, i int) ([]byte, bool) {
	out := append(r.buf[:0], r.in[start:i]...)
	defer func() { r.buf = out }()
	for i < len(r.in) {
		switch c := r.in[i]; {
		case c == '"':
			r.pos = i + 1
			if !utf8.Valid(out) {
				r.fail("a string that is not UTF-8")
				return nil, false
			}
			return out, true
		case c < ' ':
			r.pos = i
			r.fail("a control character in a string")
			return nil, false
		case c != '\\':
			out = append(out, c)
			i++
		default:
			var n int
			if out, n = unescape(out, r.in[i:]); n == 0 {
				r.pos = i
				r.fail("an escape that means nothing")
				return nil, false
			}
			i += n
		}
	}
	r.pos = len(r.in)
	r.fail("a string without its end")
	return nil, false
}

// unescape appends what the escape at the start of in stands for, and tells its length, 0 when it is none.
func unescape(out, in []byte) ([]byte, int) {
	c, n := escape(in)
	if n == 0 {
		return out, 0
	}
	return utf8.AppendRune(out, c), n
}

// escape is the character for which the escape at the start of in stands, and its length, 0 when it is none.
func escape(in []byte) (rune, int) {
	if len(in) < 2 {
		return 0, 0
	}
	switch in[1] {
	case '"', '\\', '/':
		return rune(in[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		c := hex4(in)
		switch {
		case c < 0 || 0xdc00 <= c && c < 0xe000:
			return 0, 0
		case c < 0xd800 || c >= 0xe000:
			return c, 6
		}
		if low := hex4(in[6:]); 0xdc00 <= low && low < 0xe000 {
			return 0x10000 + (c-0xd800)<<10 + (low - 0xdc00), 12
		}
	}
	return 0, 0
}

// hex4 reads \uXXXX, -1 when it is none.
func hex4(in []byte) rune {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return -1
	}
	var v rune
	for _, c := range in[2:6] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return v
}

// number reads a number's literal.
func (r *jsonReader) number() (string, bool) {
	start := r.pos
	var ok bool
	if r.pos, ok = skipNumber(r.in, start); !ok {
		r.fail("a number that is cut short")
		return "", false
	}
	return unsafe.String(&r.in[start], r.pos-start), true
}
