package limit

import "math/bits"

// divisor divides by a number that stays the same, which costs a multiplication: by its inverse (Granlund and Montgomery, Division by Invariant
// Integers using Multiplication, 1994).
type divisor struct {
	inverse uint64 // 2^(64+shift) by the number, rounded up; 0: the number is 1
	shift   uint8
}

// divisorOf makes the divisor of n, which is above 0.
func divisorOf(n int64) divisor {
	if n == 1 {
		return divisor{}
	}
	shift := bits.Len64(uint64(n-1)) - 1 // 2^shift < n <= 2^(shift+1), and the error of the inverse shows in no number below 2^63
	inverse, rest := bits.Div64(1<<shift, 0, uint64(n))
	if rest > 0 {
		inverse++
	}
	return divisor{inverse, uint8(shift)}
}

// of divides n, from 0 to 2^62, and rounds down.
func (d divisor) of(n int64) int64 {
	if d.inverse == 0 {
		return n
	}
	q, _ := bits.Mul64(uint64(n), d.inverse)
	return int64(q >> (d.shift & 63))
}
