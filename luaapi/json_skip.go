package luaapi

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// What a path does not lead to is passed over here: checked as strictly as decoding does, with nothing built. The functions tell where
// something ends, or -1 for what is no JSON; why not is then found by the reader that tells (BenchmarkJSONGetAtTheEnd).

// skip consumes a value and checks it. What it costs was charged beforehand, by length.
func (r *jsonReader) skip(depth int) {
	if end := r.expected.skipValue(r.in, r.pos, depth); end >= 0 {
		r.pos = end
		return
	}
	r.check(depth)
}

// skipValue is the end of the value that begins at i, which lies within depth arrays and objects.
func (n *expectedNames) skipValue(in []byte, i, depth int) int {
	var enclosing [maxJSONDepth + 1]byte // what closes the arrays and objects that are open around the innermost
	var closing byte                     // what closes that; 0: none is open
	outside := depth
	for {
		if closing == '}' { // a name stands here, behind its comma if it is not the first
			if e := &n.known[n.next%knownNames]; len(in)-i >= longestExpected && e.comes((*[longestExpected]byte)(in[i:])) {
				n.last, n.next = n.next, e.next
				i += e.length
			} else if i = n.read(in, i); i < 0 {
				return -1
			}
		}
		var c byte
		switch i, c = skipSpace(in, i); c {
		case '"':
			i = skipText(in, i+1)
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return -1
			}
			enclosing[depth], closing = closing, c+2 // '}' and ']' in ASCII
			if i, c = skipSpace(in, i+1); c == '"' || c != closing && closing == ']' {
				continue
			} else if c != closing {
				return -1
			}
			closing = enclosing[depth]
			depth--
			i++
		case 't':
			i = skipWord(in, i, "true")
		case 'f':
			i = skipWord(in, i, "false")
		case 'n':
			i = skipWord(in, i, "null")
		default:
			var ok bool
			if i, ok = skipNumber(in, i); !ok {
				return -1
			}
		}
		if i < 0 {
			return -1
		}
		for depth > outside {
			if i, c = skipSpace(in, i); c != closing {
				break
			}
			closing = enclosing[depth]
			depth--
			i++
		}
		if depth == outside {
			return i
		}
		if c != ',' {
			return -1
		}
		if closing == ']' {
			i++
		}
	}
}

// skipSpace is where white space ends that may stand at i, and the byte there, 0 at the end.
func skipSpace(in []byte, i int) (int, byte) {
	for ; i < len(in); i++ {
		if c := in[i]; c > ' ' {
			return i, c
		} else if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return i, c
		}
	}
	return i, 0
}

// skipName is the end of a member's name with its colon.
func skipName(in []byte, i int) int {
	i, c := skipSpace(in, i)
	if c != '"' {
		return -1
	}
	if i = skipText(in, i+1); i < 0 {
		return -1
	}
	if i, c = skipSpace(in, i); c != ':' {
		return -1
	}
	return i + 1
}

// skipWord is the end of a word that begins at i.
func skipWord(in []byte, i int, word string) int {
	if len(in)-i < len(word) || string(in[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// skipText is the end of a string whose text begins at i.
func skipText(in []byte, i int) int {
	for at := i; len(in)-at >= 8; at += 8 {
		odd := oddBytes(binary.LittleEndian.Uint64(in[at:]))
		if odd == 0 {
			continue
		}
		if at += bits.TrailingZeros64(odd) / 8; in[at] == '"' {
			return at + 1
		}
		break
	}
	return skipOddText(in, i)
}

// skipOddText is skipText for what holds more than bytes that stand for themselves, or ends with the whole text.
func skipOddText(in []byte, i int) int {
	start, ascii := i, true
	for {
		if i += plainLength(in[i:]); i >= len(in) {
			return -1
		}
		switch c := in[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(in[start:i]) {
				return -1
			}
			return i + 1
		case c == '\\':
			n := 0
			if _, n = escape(in[i:]); n == 0 {
				return -1
			}
			i += n
		case c < ' ':
			return -1
		default:
			for ascii = false; i < len(in) && in[i] >= utf8.RuneSelf; i++ {
			}
		}
	}
}

// skipNumber is the end of a number as RFC 8259 section 6 spells it, or where it is cut short.
func skipNumber(in []byte, i int) (end int, ok bool) {
	if i < len(in) && in[i] == '-' {
		i++
	}
	from := i
	if i = digitsEnd(in, i); i == from {
		return i, false
	}
	if in[from] == '0' {
		i = from + 1 // no digit follows a leading 0
	}
	if i < len(in) && in[i] == '.' {
		from = i + 1
		if i = digitsEnd(in, from); i == from {
			return i, false
		}
	}
	if i >= len(in) || in[i]|0x20 != 'e' {
		return i, true
	}
	if i++; i < len(in) && (in[i] == '+' || in[i] == '-') {
		i++
	}
	from = i
	i = digitsEnd(in, from)
	return i, i > from
}

// digitsEnd is the end of the digits that begin at i. Of eight bytes it finds the first whose distance from '0' is above 9: 0x76 more
// sets its top bit, and what it carries over reaches later ones alone.
func digitsEnd(in []byte, i int) int {
	if len(in)-i >= 8 {
		const ones, tops = 0x0101010101010101, 0x8080808080808080
		x := binary.LittleEndian.Uint64(in[i:])
		if others := ((x ^ ones*'0') + ones*0x76 | x) & tops; others != 0 {
			return i + bits.TrailingZeros64(others)/8
		}
	}
	for i < len(in) && in[i]-'0' <= 9 {
		i++
	}
	return i
}
