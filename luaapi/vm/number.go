package vm

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// TextOf is what tostring and `..` make of a number. Whole numbers below 1e21 are written in full, everything else as
// Lua 5.1's %.14g does. (The Lua manual asks for "a reasonable format"; PUC Lua prints 2^53 as 9.007199254741e+15, which
// loses digits of ids.)
func TextOf(n lua.LNumber) string {
	f := float64(n)
	if f == math.Trunc(f) && math.Abs(f) < 1e15 && (f != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(int64(f), 10)
	}
	var buf [32]byte
	return string(AppendText(buf[:0], n))
}

// AppendText appends TextOf(n) to b.
func AppendText(b []byte, n lua.LNumber) []byte {
	f := float64(n)
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	case f == math.Trunc(f) && math.Abs(f) < 1e15 && (f != 0 || !math.Signbit(f)):
		return strconv.AppendInt(b, int64(f), 10)
	case f == math.Trunc(f) && math.Abs(f) < 1e21:
		return strconv.AppendFloat(b, f, 'f', 0, 64)
	}
	return appendG14(b, f)
}

// appendG14 appends C's %.14g of a finite number: 14 significant digits, no trailing zeros, exponents of at least two digits.
func appendG14(b []byte, f float64) []byte {
	if f == 0 {
		if math.Signbit(f) {
			b = append(b, '-')
		}
		return append(b, '0')
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], f, 'e', 13, 64) // d.ddddddddddddde±XX
	mark := len(e) - 1
	for e[mark] != 'e' {
		mark--
	}
	exponent, _ := strconv.Atoi(string(e[mark+1:]))
	if exponent >= -4 && exponent < 14 {
		start := len(b)
		b = strconv.AppendFloat(b, f, 'f', 13-exponent, 64)
		return trimZeros(b, start)
	}
	b = trimZeros(append(b, e[:mark]...), len(b))
	return append(b, e[mark:]...)
}

func trimZeros(b []byte, start int) []byte {
	dot := false
	for _, c := range b[start:] {
		dot = dot || c == '.'
	}
	if !dot {
		return b
	}
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	return b
}

// NumberText is what a binding writes where a number leaves Lua (a header, JSON, a log line): the shortest text that reads
// back as the same number, without exponent below 1e21. NaN and infinities give "nan", "inf", "-inf"; refuse them first
// where they have no meaning.
func NumberText(f float64) string {
	var buf [32]byte
	return string(AppendNumber(buf[:0], f))
}

// AppendNumber appends NumberText(f) to b.
func AppendNumber(b []byte, f float64) []byte {
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.AppendInt(b, int64(f), 10)
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	case math.Abs(f) < 1e21:
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// ParseNumber reads a number as Lua 5.1's lexer writes it: decimal with fraction and exponent, or 0x and hexadecimal digits;
// a sign before and white space around it are allowed, nothing else ("inf", "nan", "1_000" and "" are not numbers).
func ParseNumber(s string) (float64, bool) {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	body := s
	if body != "" && (body[0] == '-' || body[0] == '+') {
		body = body[1:]
	}
	if len(body) > 2 && body[0] == '0' && body[1]|0x20 == 'x' {
		f, ok := parseHex(body[2:])
		if s[0] == '-' {
			f = -f
		}
		return f, ok
	}
	if !isDecimal(body) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func parseHex(s string) (float64, bool) {
	f := 0.0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case isDigit(c):
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		f = f*16 + float64(c)
	}
	return f, true
}

func isDecimal(s string) bool {
	i, digits := 0, 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		digits++
	}
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && isDigit(s[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return false
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		if i == len(s) {
			return false
		}
		for ; i < len(s) && isDigit(s[i]); i++ {
		}
	}
	return i == len(s)
}

// ToNumber converts as Lua's arithmetic does: numbers, and strings that ParseNumber reads.
func ToNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return ParseNumber(string(v))
	}
	return 0, false
}
