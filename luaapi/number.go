package luaapi

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// smallNumbers are boxed once, because most numbers that the gateway hands out are small.
var smallNumbers = func() (boxed [1024]lua.LValue) {
	for i := range boxed {
		boxed[i] = lua.LNumber(i)
	}
	return boxed
}()

// number boxes a number for Lua.
func number(f float64) lua.LValue {
	if f >= 0 && f < float64(len(smallNumbers)) && f == math.Trunc(f) && !math.Signbit(f) {
		return smallNumbers[int(f)]
	}
	return lua.LNumber(f)
}

// bigNumber is a number as JSON spelt it, kept because a float cannot hold it.
type bigNumber string

// luaNumber gives a JSON literal as a Lua number, or as it is spelt when a float would lose digits. The literal is not kept.
func luaNumber(literal string) lua.LValue {
	if len(literal) <= 15 && !strings.ContainsAny(literal, ".eE") {
		n, _ := strconv.ParseInt(literal, 10, 64)
		return number(float64(n))
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || !sameDigits(literal, f) {
		return newBigNumber(strings.Clone(literal))
	}
	return number(f)
}

// sameDigits tells whether the shortest text of f has the digits and the power of ten that the literal has.
func sameDigits(literal string, f float64) bool {
	digits, exponent := decimal(literal)
	if digits == "" {
		return f == 0
	}
	if len(digits) <= 15 && math.Abs(f) > 1e-290 {
		return true
	}
	var buf [32]byte
	shortest, power := decimal(string(strconv.AppendFloat(buf[:0], f, 'e', -1, 64)))
	return digits == shortest && exponent == power
}

// decimal takes a literal apart: its significant digits, and the power of ten of the last of them.
func decimal(literal string) (digits string, exponent int) {
	mantissa := strings.TrimPrefix(literal, "-")
	if e := strings.IndexAny(mantissa, "eE"); e >= 0 {
		exponent, _ = strconv.Atoi(strings.TrimPrefix(mantissa[e+1:], "+")) // beyond int it is clamped: never a float's
		mantissa = mantissa[:e]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	return significant, exponent + len(digits) - len(significant)
}
