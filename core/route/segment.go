package route

import "github.com/moongate/moongate/core"

// segmentEnd is the index of the first separator.
func segmentEnd(b []byte) int {
	for i, c := range b {
		if c == '/' || c == '\\' {
			return i
		}
	}
	return len(b)
}

// segment is what one segment of a raw path turned out to be.
type segment struct {
	dots    int  // 1 or 2 for a dot segment
	bare    bool // nothing in it, but perhaps parameters
	params  bool
	encoded bool // decoding changes it
	percent bool // invalid percent-encoding
	null    bool // %00
}

func (s segment) fault(last bool) *core.Error {
	switch {
	case s.dots > 0:
		return errDots
	case s.bare && !last:
		return errEmpty
	case s.percent:
		return errPercent
	case s.null:
		return errNull
	}
	return nil
}

// inspect reads one segment. dots follows the part that has been read so far: -1 is one that is more than dots.
func inspect(raw []byte) (s segment, err error) {
	dots, inParams, bounded := 0, false, false
	// A part that an encoded character bounds hides its dots from readers who decode late.
	part := func() bool { return dots == 1 || dots == 2 }
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if pathClass[c]&classNever != 0 {
			return s, errByte
		}
		encoded := false
		if c == '%' {
			v, ok := unhex(raw[i+1:])
			if !ok {
				s.percent, s.encoded = true, true
			} else {
				c, encoded = v, true
				i += 2
				s.null = s.null || c == 0
				if pathClass[c]&classUnreserved != 0 {
					s.encoded, encoded = true, false
				}
			}
		}
		switch {
		case encoded && (c == '/' || c == '\\'):
			if part() {
				return s, errHidden
			}
			dots, inParams, bounded = 0, false, true
		case inParams:
		case encoded && (c == ';' || c == 0):
			if part() {
				return s, errHidden
			}
			dots = -1
		case c == ';' && !encoded:
			s.params, inParams = true, true
			if bounded && part() {
				return s, errHidden
			}
		case c == '.':
			if dots >= 0 {
				dots++
			}
		default:
			dots = -1
		}
	}
	if part() {
		if bounded {
			return s, errHidden
		}
		s.dots = dots
	}
	s.bare = len(raw) == 0 || raw[0] == ';'
	return s, nil
}
