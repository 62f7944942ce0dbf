package stdlib

import (
	"math"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func mathFuncs() []vm.Func {
	x := params(param("x", "number"))
	number := params(param("result", "number"))
	all := []vm.Func{
		{Name: "math.atan2", Doc: "The arc tangent of y/x, in the right quadrant.", Params: params(param("y", "number"), param("x", "number")),
			Returns: number, Do: binary(math.Atan2)},
		{Name: "math.fmod", Doc: "The remainder of x/y, with the sign of x.", Params: params(param("x", "number"), param("y", "number")),
			Returns: number, Do: binary(math.Mod)},
		{Name: "math.pow", Doc: "x to the power of y.", Params: params(param("x", "number"), param("y", "number")), Returns: number,
			Do: binary(math.Pow)},
		{Name: "math.ldexp", Doc: "m times 2 to the power of e.", Params: params(param("m", "number"), param("e", "integer")), Returns: number,
			Do: func(a vm.Args) int { return push(a, math.Ldexp(a.Number(1), max(min(a.Int(2), 1<<20), -1<<20))) }},
		{Name: "math.frexp", Doc: "m and e such that x = m * 2^e, with m from 0.5 to 1.", Params: x,
			Returns: params(param("m", "number"), param("e", "integer")), Do: frexp},
		{Name: "math.modf", Doc: "The whole part and the fraction of x.", Params: x,
			Returns: params(param("whole", "number"), param("fraction", "number")), Do: modf},
		{Name: "math.max", Doc: "The largest argument.", Params: params(param("x", "number"), param("...", "number")), Returns: number,
			Do: fold(func(best, x float64) bool { return x > best })},
		{Name: "math.min", Doc: "The smallest argument.", Params: params(param("x", "number"), param("...", "number")), Returns: number,
			Do: fold(func(best, x float64) bool { return x < best })},
		{Name: "math.random", Doc: "A random number from 0 to 1 (without 1), or a whole one from 1 to m, or from m to n. Not for secrets.",
			Params: params(opt("m", "integer"), opt("n", "integer")), Returns: number, Do: random},
		{Name: "math.randomseed", Doc: "Makes the random numbers repeatable until the end of the filter function.", Params: x, Do: randomSeed},
	}
	for _, f := range []struct {
		name, doc string
		f         func(float64) float64
	}{
		{"abs", "The absolute value of x.", math.Abs},
		{"acos", "The arc cosine of x.", math.Acos},
		{"asin", "The arc sine of x.", math.Asin},
		{"atan", "The arc tangent of x.", math.Atan},
		{"ceil", "The smallest whole number not below x.", math.Ceil},
		{"cos", "The cosine of x.", math.Cos},
		{"cosh", "The hyperbolic cosine of x.", math.Cosh},
		{"deg", "Radians as degrees.", func(x float64) float64 { return x / (math.Pi / 180) }},
		{"exp", "e to the power of x.", math.Exp},
		{"floor", "The largest whole number not above x.", math.Floor},
		{"log", "The natural logarithm of x.", math.Log},
		{"log10", "The logarithm of x to base 10.", math.Log10},
		{"rad", "Degrees as radians.", func(x float64) float64 { return x * (math.Pi / 180) }},
		{"sin", "The sine of x.", math.Sin},
		{"sinh", "The hyperbolic sine of x.", math.Sinh},
		{"sqrt", "The square root of x.", math.Sqrt},
		{"tan", "The tangent of x.", math.Tan},
		{"tanh", "The hyperbolic tangent of x.", math.Tanh},
	} {
		all = append(all, vm.Func{Name: "math." + f.name, Doc: f.doc, Params: x, Returns: number,
			Do: func(a vm.Args) int { return push(a, f.f(a.Number(1))) }})
	}
	return all
}

func push(a vm.Args, f float64) int {
	a.L.Push(lua.LNumber(f))
	return 1
}

func binary(f func(x, y float64) float64) func(vm.Args) int {
	return func(a vm.Args) int { return push(a, f(a.Number(1), a.Number(2))) }
}

func fold(better func(best, x float64) bool) func(vm.Args) int {
	return func(a vm.Args) int {
		best := a.Number(1)
		for i := 2; i <= a.Len(); i++ {
			if x := a.Number(i); better(best, x) {
				best = x
			}
		}
		return push(a, best)
	}
}

func frexp(a vm.Args) int {
	m, e := math.Frexp(a.Number(1))
	return a.Return(lua.LNumber(m), lua.LNumber(e))
}

func modf(a vm.Args) int {
	x := a.Number(1)
	if math.IsInf(x, 0) {
		return a.Return(lua.LNumber(x), lua.LNumber(math.Copysign(0, x)))
	}
	whole := math.Trunc(x)
	return a.Return(lua.LNumber(whole), lua.LNumber(math.Copysign(x-whole, x)))
}

func random(a vm.Args) int {
	r := a.VM.Random().Float64()
	low, high := 1.0, 0.0
	switch a.Len() {
	case 0:
		return push(a, r)
	case 1:
		high = math.Trunc(a.Number(1))
	case 2:
		low, high = math.Trunc(a.Number(1)), math.Trunc(a.Number(2))
	default:
		a.Raise("wrong number of arguments to 'math.random'")
	}
	if !(low <= high) {
		a.Bad(a.Len(), "interval is empty")
	}
	return push(a, math.Floor(r*(high-low+1))+low)
}

func randomSeed(a vm.Args) int {
	a.VM.SeedRandom(math.Float64bits(a.Number(1)))
	return 0
}
