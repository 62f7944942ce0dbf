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
	if end := skipValue(r.in, r.pos, depth); end >= 0 {
		r.pos = end
		return
	}
	r.check(depth)
}

// skipValue is the end of the value that begins at i, which lies within depth arrays and objects.
func skipValue(in []byte, i, depth int) int {
	var enclosing [maxJSONDepth + 1]byte // what closes the arrays and objects that are open around the innermost
	var closing byte                     // what closes that; 0: none is open
	outside := depth
	for {
		var c byte
		if i, c = skipSpace(in, i); c == '{' || c == '[' {
			if depth++; depth > maxJSONDepth {
				return -1
			}
			enclosing[depth], closing = closing, c+2 // '}' and ']' in ASCII
			if i, c = skipSpace(in, i+1); c != closing {
				if closing == '}' {
					if i = skipName(in, i); i < 0 {
						return -1
					}
				}
				continue
			}
		} else {
			if i = skipScalar(in, i, c); i < 0 || depth == outside {
				return i
			}
			i, c = skipSpace(in, i)
		}
		for c == closing {
			closing = enclosing[depth]
			if depth--; depth == outside {
				return i + 1
			}
			i, c = skipSpace(in, i+1)
		}
		if c != ',' {
			return -1
		}
		i++
		if closing == '}' {
			if i = skipName(in, i); i < 0 {
				return -1
			}
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
	if i < len(in) && in[i] == ':' {
		return i + 1
	}
	if i, c = skipSpace(in, i); c != ':' {
		return -1
	}
	return i + 1
}

// skipScalar is the end of a string, number or word that begins at i with c.
func skipScalar(in []byte, i int, c byte) int {
	switch c {
	case '"':
		return skipText(in, i+1)
	case 't':
		return skipWord(in, i, "true")
	case 'f':
		return skipWord(in, i, "false")
	case 'n':
		return skipWord(in, i, "null")
	}
	if end, ok := skipNumber(in, i); ok {
		return end
	}
	return -1
}

func skipWord(in []byte, i int, word string) int {
	if len(in)-i < len(word) || string(in[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// skipText is the end of a string whose text begins at i.
func skipText(in []byte, i int) int {
	for at := i; at+8 <= len(in); at += 8 {
		if odd := oddBytes(binary.LittleEndian.Uint64(in[at:])); odd != 0 {
			if at += bits.TrailingZeros64(odd) / 8; in[at] == '"' {
				return at + 1
			}
			break
		}
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
	if i < len(in) && in[i]|0x20 == 'e' {
		if i++; i < len(in) && (in[i] == '+' || in[i] == '-') {
			i++
		}
		from = i
		if i = digitsEnd(in, from); i == from {
			return i, false
		}
	}
	return i, true
}

// digitsEnd is the end of the digits that begin at i.
func digitsEnd(in []byte, i int) int {
	for i < len(in) && in[i]-'0' <= 9 {
		i++
	}
	return i
}
