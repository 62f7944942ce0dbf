package vm

import (
	"fmt"
	"math/bits"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Phase is a set of moments in which a function may be called; the caller of a VM defines its bits and names them in
// Options.Phases. Zero in a Func means any.
type Phase uint32

// Param describes a parameter or result for stubs and documentation.
type Param struct {
	Name     string
	Type     string // as LuaLS writes it: "string", "table<string, any>", "integer?"
	Doc      string
	Optional bool
}

// Func is one entry of the binding table: a Go function that scripts can call. The table serves registration, the phase
// check, editor stubs and documentation.
type Func struct {
	Name    string // dotted from the globals down: "pairs", "string.rep", "gw.jwt.verify"; a method is "req:body"
	Doc     string
	Params  []Param
	Returns []Param
	Phases  Phase // 0: any

	// Do receives the call and returns how many results it has pushed. It may raise with Args.Raise and Args.Bad, must
	// charge the VM for work that grows with its input, and must not keep Args.
	Do func(a Args) int
}

// Function makes the Lua function of f, phase check included. It has no state: all VMs may share it.
func (f *Func) Function() *lua.LFunction {
	do := f.Do
	return &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
		v := From(L)
		if f.Phases != 0 && f.Phases&v.Phase == 0 {
			L.RaiseError("%s", f.wrongPhase(v))
		}
		if L != v.main.L {
			defer v.notePanic()
		}
		return do(Args{L: L, VM: v, Func: f})
	}}
}

func (f *Func) wrongPhase(v *VM) string {
	names := v.base.options.Phases
	var allowed []string
	for rest := f.Phases; rest != 0; rest &= rest - 1 {
		allowed = append(allowed, phaseName(names, rest&-rest))
	}
	here := "here"
	if v.Phase != 0 {
		here = "in " + phaseName(names, v.Phase)
	}
	return fmt.Sprintf("%s cannot be called %s; it may be called in %s", f.Name, here, strings.Join(allowed, ", "))
}

func phaseName(names []string, p Phase) string {
	if i := bits.TrailingZeros32(uint32(p)); i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("phase %#x", uint32(p))
}
