package stdlib

import (
	"math"
	"strconv"
	"strings"

	"github.com/moongate/moongate/luaapi/vm"
)

// spec is one conversion of string.format: %[flags][width][.precision]verb.
type spec struct {
	minus, plus, space, alternate, zero bool
	width                               int
	precision                           int // -1: not given
	verb                                byte
}

func format(a vm.Args) int {
	f := a.String(1)
	b := make([]byte, 0, len(f)+32)
	limit := a.VM.Base().Limits().String
	arg := 1
	for i := 0; i < len(f); {
		if f[i] != '%' {
			next := strings.IndexByte(f[i:], '%')
			if next < 0 {
				next = len(f) - i
			}
			b = append(b, f[i:i+next]...)
			i += next
			continue
		}
		if i++; i < len(f) && f[i] == '%' {
			b = append(b, '%')
			i++
			continue
		}
		s, n := parseSpec(a, f[i:])
		i += n
		arg++
		if arg > a.Len() {
			a.Bad(arg, "no value")
		}
		a.VM.Charge(4)
		b = s.append(b, a, arg)
		if len(b) > limit {
			a.CheckString(len(b)) // raises
		}
	}
	a.CheckString(len(b))
	a.L.Push(taken(b))
	return 1
}

// parseSpec reads what follows a %. It raises for what C's printf in Lua 5.1 would not take.
func parseSpec(a vm.Args, f string) (s spec, n int) {
	s.precision = -1
	for ; n < len(f) && strings.IndexByte("-+ #0", f[n]) >= 0; n++ {
		switch f[n] {
		case '-':
			s.minus = true
		case '+':
			s.plus = true
		case ' ':
			s.space = true
		case '#':
			s.alternate = true
		case '0':
			s.zero = true
		}
	}
	if n > 5 {
		a.Raise("invalid format (repeated flags)")
	}
	digits := func() (value int) {
		from := n
		for ; n < len(f) && isDigit(f[n]); n++ {
			if n-from == 2 {
				a.Raise("invalid format (width or precision too long)")
			}
			value = value*10 + int(f[n]-'0')
		}
		return value
	}
	s.width = digits()
	if n < len(f) && f[n] == '.' {
		n++
		s.precision = digits()
	}
	if n == len(f) {
		a.Raise("invalid option '%%' to 'format'")
	}
	s.verb = f[n]
	return s, n + 1
}

func (s *spec) append(b []byte, a vm.Args, arg int) []byte {
	switch s.verb {
	case 'c':
		return s.pad(b, "", string([]byte{byte(a.Int(arg))}), false)
	case 'd', 'i':
		return s.signed(b, a.Number(arg))
	case 'u', 'o', 'x', 'X':
		return s.unsigned(b, a.Number(arg))
	case 'e', 'E', 'f', 'g', 'G':
		return s.float(b, a.Number(arg))
	case 'q':
		text := a.String(arg)
		a.CheckString(len(text) + 3*strings.Count(text, "\x00"))
		return quoted(b, text)
	case 's':
		text := a.String(arg)
		if s.precision >= 0 && s.precision < len(text) {
			text = text[:s.precision]
		}
		a.CheckString(len(text))
		return s.pad(b, "", text, false)
	}
	a.Raise("invalid option '%%%c' to 'format'", s.verb)
	return nil
}

// pad appends sign and text with the width filled up; zeros go between the two.
func (s *spec) pad(b []byte, sign, text string, zeros bool) []byte {
	fill := max(s.width-len(sign)-len(text), 0)
	switch {
	case s.minus:
		b = append(append(b, sign...), text...)
		return repeat(b, ' ', fill)
	case zeros:
		b = repeat(append(b, sign...), '0', fill)
		return append(b, text...)
	}
	b = append(repeat(b, ' ', fill), sign...)
	return append(b, text...)
}

func repeat(b []byte, c byte, n int) []byte {
	for range n {
		b = append(b, c)
	}
	return b
}

func (s *spec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.plus:
		return "+"
	case s.space:
		return " "
	}
	return ""
}

// integer appends digits with the precision as their least number.
func (s *spec) integer(b []byte, sign, digits string) []byte {
	if s.precision == 0 && digits == "0" {
		digits = ""
	}
	if n := s.precision - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	return s.pad(b, sign, digits, s.zero && s.precision < 0)
}

func (s *spec) signed(b []byte, f float64) []byte {
	n := toInt64(f)
	digits := strconv.FormatInt(n, 10)
	return s.integer(b, s.sign(n < 0), strings.TrimPrefix(digits, "-"))
}

func (s *spec) unsigned(b []byte, f float64) []byte {
	n := uint64(toInt64(f))
	if f >= 1<<63 && f < 1<<64 {
		n = uint64(f)
	}
	switch s.verb {
	case 'o':
		digits := strconv.FormatUint(n, 8)
		if !s.alternate {
			return s.integer(b, "", digits)
		}
		if digits[0] != '0' {
			digits = "0" + digits
		}
		octal := *s
		if octal.precision == 0 {
			octal.precision = 1 // # shows at least one digit
		}
		return octal.integer(b, "", digits)
	case 'u':
		return s.integer(b, "", strconv.FormatUint(n, 10))
	}
	digits, prefix := strconv.FormatUint(n, 16), ""
	if s.alternate && n != 0 {
		prefix = "0x"
	}
	if s.verb == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	return s.integer(b, prefix, digits)
}

// toInt64 cuts towards zero; what does not fit becomes the smallest integer, as on amd64.
func toInt64(f float64) int64 {
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// quoted appends s so that Lua reads it back.
func quoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, `\r`...)
		case 0:
			b = append(b, `\000`...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
