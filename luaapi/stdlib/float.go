package stdlib

import (
	"math"
	"strconv"
	"strings"
)

func (s *spec) float(b []byte, f float64) []byte {
	sign := s.sign(math.Signbit(f) && !math.IsNaN(f))
	upper := s.verb < 'a'
	text := ""
	switch {
	case math.IsNaN(f):
		text = "nan"
	case math.IsInf(f, 0):
		text = "inf"
	default:
		text = s.finite(math.Abs(f))
	}
	if upper {
		text = strings.ToUpper(text)
	}
	return s.pad(b, sign, text, s.zero && !math.IsNaN(f) && !math.IsInf(f, 0))
}

func (s *spec) finite(f float64) string {
	precision := s.precision
	if precision < 0 {
		precision = 6
	}
	verb := s.verb | 0x20
	if verb != 'g' {
		text := strconv.FormatFloat(f, verb, precision, 64)
		if precision == 0 && s.alternate {
			text = withPoint(text)
		}
		return text
	}
	precision = max(precision, 1)
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	mark := strings.IndexByte(text, 'e')
	exponent, _ := strconv.Atoi(text[mark+1:])
	tail := text[mark:]
	if exponent >= -4 && exponent < precision {
		text, tail = strconv.FormatFloat(f, 'f', precision-1-exponent, 64), ""
	} else {
		text = text[:mark]
	}
	if s.alternate {
		return withPoint(text + tail)
	}
	if strings.IndexByte(text, '.') >= 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + tail
}

// withPoint makes sure of a decimal point, as the flag # asks.
func withPoint(text string) string {
	if strings.IndexByte(text, '.') >= 0 {
		return text
	}
	if mark := strings.IndexByte(text, 'e'); mark >= 0 {
		return text[:mark] + "." + text[mark:]
	}
	return text + "."
}
