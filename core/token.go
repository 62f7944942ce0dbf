package core

// The alphabets of RFC 9110 section 5: which bytes a name may have, which a value, and how names compare.

const (
	classToken = 1 << iota // tchar, RFC 9110 section 5.6.2
	classValue             // field-content with SP, HTAB and obs-text, RFC 9110 section 5.5
)

var byteClass = func() (t [256]uint8) {
	for c := 0x21; c < 0x100; c++ {
		if c != 0x7f {
			t[c] |= classValue
		}
	}
	t[' '] |= classValue
	t['\t'] |= classValue
	for c := '0'; c <= '9'; c++ {
		t[c] |= classToken
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= classToken
		t[c-0x20] |= classToken
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= classToken
	}
	return t
}()

var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 0x20
		}
	}
	return t
}()

// IsTokenByte tells whether c may stand in a header name or a method.
func IsTokenByte(c byte) bool { return byteClass[c]&classToken != 0 }

// IsToken tells whether b is a token: at least one byte, all of them tchar.
func IsToken(b []byte) bool {
	for _, c := range b {
		if byteClass[c]&classToken == 0 {
			return false
		}
	}
	return len(b) > 0
}

// IsValue tells whether b may stand as a header value on the wire: no CR, LF, NUL or other control byte but the tab.
func IsValue(b []byte) bool {
	for _, c := range b {
		if byteClass[c]&classValue == 0 {
			return false
		}
	}
	return true
}

// EqualFold compares without regard to ASCII case. Bytes above 0x7f compare as they are.
func EqualFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if c != b[i] && lower[c] != lower[b[i]] {
			return false
		}
	}
	return true
}

// EqualFoldString is EqualFold against a string.
func EqualFoldString(a []byte, b string) bool { return EqualFold(a, Bytes(b)) }

// Trim takes optional white space (SP and HTAB) from both ends.
func Trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// NextItem takes the first element of a comma-separated list (RFC 9110 section 5.6.1), trimmed, and the rest. Empty elements
// are skipped; item is nil at the end.
func NextItem(list []byte) (item, rest []byte) {
	for len(list) > 0 {
		end := 0
		for end < len(list) && list[end] != ',' {
			end++
		}
		item = Trim(list[:end])
		if end < len(list) {
			end++
		}
		list = list[end:]
		if len(item) > 0 {
			return item, list
		}
	}
	return nil, nil
}

// HasItem tells whether a comma-separated list has that element, without regard to case.
func HasItem(list []byte, want string) bool {
	for item, rest := NextItem(list); item != nil; item, rest = NextItem(rest) {
		if EqualFoldString(item, want) {
			return true
		}
	}
	return false
}
