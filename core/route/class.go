package route

// The alphabets of RFC 3986.

const (
	classStop       = 1 << iota // plain reading ends here
	classStart                  // and here, when it begins a segment
	classNever                  // no path has it
	classUnreserved             // section 2.3
	classPchar                  // section 3.3, without '%' and ';', and the slash: the matcher takes it as it is
)

var pathClass = func() (t [256]uint8) {
	for c := 0; c <= ' '; c++ {
		t[c] |= classNever | classStop
	}
	for _, c := range "?#\x7f" {
		t[c] |= classNever | classStop
	}
	for _, c := range "%\\" {
		t[c] |= classStop
	}
	for _, c := range "/.;" {
		t[c] |= classStart
	}
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~" {
		t[c] |= classUnreserved | classPchar
	}
	for _, c := range "!$&'()*+,=:@/" {
		t[c] |= classPchar
	}
	return t
}()

const upperHex = "0123456789ABCDEF"

var hexValue = func() (t [256]uint8) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range uint8(10) {
		t['0'+i] = i
	}
	for i := range uint8(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// unhex reads the two digits after a percent sign.
func unhex(b []byte) (byte, bool) {
	if len(b) < 2 {
		return 0, false
	}
	hi, lo := hexValue[b[0]], hexValue[b[1]]
	return hi<<4 | lo&15, hi|lo < 0x10
}
