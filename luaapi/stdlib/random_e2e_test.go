//go:build e2e

package stdlib_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// programs makes random Lua programs that exercise the compiler: assignments, closures, logic, loops, calls, varargs.
func programs(n int) (out []string) {
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(7, uint64(i)))}
		g.vars = []string{"a", "b", "c"}
		var b strings.Builder
		b.WriteString("local t = {1, 'two', 3, x = 4, y = 'five'} local function id(...) return ... end local function two(v) return v, 'second' end " +
			"local function num(v) return tonumber(v) or 1 end local a, b, c = 1, 'b', nil ")
		b.WriteString(g.block(3, 5))
		b.WriteString(" return a, b, c, t[1], t[2], t[3], t.x, t.y")
		out = append(out, b.String())
	}
	return out
}

type generator struct {
	*rand.Rand
	vars  []string
	fresh int
	va    bool // inside a vararg function
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) v() string { return g.vars[g.IntN(len(g.vars))] }

func (g *generator) block(depth, n int) string {
	had := len(g.vars)
	var parts []string
	for range 1 + g.IntN(n) {
		parts = append(parts, g.stmt(depth))
	}
	g.vars = g.vars[:had]
	return strings.Join(parts, " ")
}

func (g *generator) place() string {
	switch g.IntN(5) {
	case 0:
		return "t." + g.pick("x", "y")
	case 1:
		return "t[" + g.pick("1", "2", "3", "num("+g.v()+") % 3 + 1") + "]"
	}
	return g.v()
}

func (g *generator) exprs(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = g.expr(2)
	}
	return strings.Join(list, ", ")
}

func (g *generator) stmt(depth int) string {
	if depth == 0 {
		return fmt.Sprintf("%s = %s", g.place(), g.expr(2))
	}
	switch g.IntN(11) {
	case 0, 1, 2:
		return fmt.Sprintf("%s = %s", g.place(), g.expr(3))
	case 3:
		return fmt.Sprintf("%s, %s = %s", g.place(), g.place(), g.exprs(1+g.IntN(3)))
	case 4:
		return fmt.Sprintf("%s, %s, %s = %s", g.place(), g.place(), g.place(), g.exprs(1+g.IntN(4)))
	case 5:
		e := g.exprs(1 + g.IntN(3))
		g.fresh++
		p, q := fmt.Sprintf("l%d", g.fresh), fmt.Sprintf("m%d", g.fresh)
		g.vars = append(g.vars, p, q)
		return fmt.Sprintf("local %s, %s = %s", p, q, e)
	case 6:
		return fmt.Sprintf("if %s then %s elseif %s then %s else %s end", g.expr(3), g.block(depth-1, 3), g.expr(2), g.block(depth-1, 3), g.block(depth-1, 3))
	case 7:
		g.fresh++
		i := fmt.Sprintf("i%d", g.fresh)
		g.vars = append(g.vars, i)
		body := g.block(depth-1, 3)
		g.vars = g.vars[:len(g.vars)-1]
		return fmt.Sprintf("for %s = 1, %d do %s if %s then break end end", i, 1+g.IntN(4), body, g.expr(1))
	case 8:
		return g.function(depth)
	case 9:
		return fmt.Sprintf("do local n = 0 repeat n = n + 1 local r = %s %s until r == n or n > 3 end", g.expr(2), g.block(depth-1, 3))
	default:
		return fmt.Sprintf("id(%s)", g.exprs(1+g.IntN(3)))
	}
}

// function declares a function with its own parameters, perhaps vararg, and calls it.
func (g *generator) function(depth int) string {
	g.fresh++
	name, p, q := fmt.Sprintf("f%d", g.fresh), fmt.Sprintf("p%d", g.fresh), fmt.Sprintf("q%d", g.fresh)
	had, hadVA := g.vars, g.va
	g.vars = append(append([]string{}, g.vars...), p, q)
	parameters := p + ", " + q
	if g.va = g.IntN(2) == 0; g.va {
		parameters += ", ..."
	}
	body := g.block(depth-1, 4)
	result := g.exprs(1 + g.IntN(2))
	g.vars, g.va = had, hadVA
	call := fmt.Sprintf("%s, %s = %s(%s)", g.place(), g.place(), name, g.exprs(2+g.IntN(2)))
	if g.IntN(2) == 0 {
		call = fmt.Sprintf("%s = %s(%s) or %s", g.place(), name, g.exprs(2), g.v())
	}
	return fmt.Sprintf("local function %s(%s) %s return %s end %s", name, parameters, body, result, call)
}

func (g *generator) expr(depth int) string {
	if depth == 0 {
		return g.pick("nil", "true", "false", "1", "2.5", "'s'", g.v(), g.v(), g.v(), "t.x", "t[2]")
	}
	e := func() string { return g.expr(depth - 1) }
	switch g.IntN(15) {
	case 0:
		return e() + " and " + e()
	case 1:
		return e() + " or " + e()
	case 2:
		return "not (" + e() + ")"
	case 3:
		return "(" + e() + ") " + g.pick("==", "~=") + " (" + e() + ")"
	case 4:
		return "num(" + e() + ") " + g.pick("+", "-", "*", "<", ">=", "<=") + " num(" + e() + ")"
	case 5:
		return "tostring(" + e() + ") .. tostring(" + e() + ")" + g.pick("", " .. 'k'", " .. 7")
	case 6:
		return "id(" + e() + ", " + e() + ")"
	case 7:
		return "(two(" + e() + "))"
	case 8:
		return "two(" + e() + ")"
	case 9:
		return "(function(" + g.pick("", "...") + ") return " + g.plain(depth-1) + " end)(" + e() + ")"
	case 10:
		return "#{" + e() + ", " + "two(" + e() + ")}"
	case 11:
		return "({" + e() + ", x = " + e() + "})" + g.pick("[1]", ".x")
	case 12:
		return "(" + e() + " and " + e() + ") or (" + e() + ")"
	case 13:
		if g.va {
			return g.pick("(...)", "select('#', ...)", "...", "({...})[1]")
		}
		return "-num(" + e() + ")"
	}
	return g.expr(0)
}

// plain is an expression without varargs, for inside a nested function.
func (g *generator) plain(depth int) string {
	had := g.va
	g.va = false
	defer func() { g.va = had }()
	return g.expr(depth)
}
