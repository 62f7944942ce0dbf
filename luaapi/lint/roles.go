package lint

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/moongate/moongate/luaapi/vm"
)

// member is one field of the script's table.
type member struct {
	value ast.Expr
	line  int
}

// settleRoles finds the script's table and tells its functions' parameters what they are.
func (c *checker) settleRoles() {
	c.roles, c.phases = map[*function]Function{}, map[*function]vm.Phase{}
	c.read = map[string]bool{}
	n := len(c.chunk)
	if n == 0 {
		return
	}
	last, ok := c.chunk[n-1].(*ast.ReturnStmt)
	if !ok || len(last.Exprs) != 1 {
		return
	}
	table, name := c.tableOf(last.Exprs[0])
	if table == nil {
		return
	}
	for _, f := range table.Fields {
		if key, ok := f.Key.(*ast.StringExpr); ok {
			c.member(key.Value, member{f.Value, f.Value.Line()})
		}
	}
	if c.table = name; name != nil {
		c.membersOf(name, c.chunk)
	}
}

// membersOf finds M.x = ... and function M.x(...) in the file's own statements.
func (c *checker) membersOf(m *variable, stmts []ast.Stmt) {
	field := func(e ast.Expr) (string, bool) {
		at, ok := e.(*ast.AttrGetExpr)
		if !ok {
			return "", false
		}
		of, ok := at.Object.(*ast.IdentExpr)
		key, named := at.Key.(*ast.StringExpr)
		if !ok || !named || c.names[of] != m {
			return "", false
		}
		return key.Value, true
	}
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.FuncDefStmt:
			if key, ok := field(s.Name.Func); ok {
				c.member(key, member{s.Func, s.Line()})
			}
			if of, ok := s.Name.Receiver.(*ast.IdentExpr); ok && c.names[of] == m {
				if _, known := c.world.Functions[s.Name.Method]; known {
					c.note("colon", s.Line(), s.Name.Method, "write function "+of.Value+"."+s.Name.Method+" with a dot: the gateway gives no self")
				}
			}
		case *ast.AssignStmt:
			for i, e := range s.Lhs {
				if key, ok := field(e); ok && len(s.Lhs) == len(s.Rhs) {
					c.member(key, member{s.Rhs[i], s.Line()})
				}
			}
		}
	}
}

func (c *checker) member(name string, m member) {
	if name == "config" {
		c.settings, _ = c.tableOf(m.value)
		return
	}
	role, ok := c.world.Functions[name]
	fn := c.functionOf(m.value)
	if !ok || fn == nil {
		return
	}
	if _, twice := c.roles[fn]; twice { // one function for two: its parameters are now this, now that
		for _, p := range fn.params {
			p.handle = ""
		}
		c.phases[fn] |= role.Phase
		role.Returns = nil
		c.roles[fn] = role
		return
	}
	role.name = name
	c.roles[fn] = role
	c.phases[fn] = role.Phase
	for i, p := range fn.params {
		if i < len(role.Params) && !p.assigned {
			p.handle = role.Params[i]
		}
	}
}

// anywhere is the phase of functions of which nobody knows when they run.
const anywhere vm.Phase = ^vm.Phase(0)

// settlePhases finds out when the file's functions run: those that the gateway calls, those that these call, and so on.
func (c *checker) settlePhases() {
	c.phases[c.main] = c.world.Load
	later, given := c.givenAway()
	named := map[*function]*variable{}
	for _, v := range c.locals {
		if fn := c.functions[asFunction(v.init)]; fn != nil && !v.assigned {
			named[fn] = v
		}
	}
	for _, fn := range c.functions {
		if _, is := c.roles[fn]; !is && named[fn] == nil && later[fn] == 0 && fn.outer == c.main {
			c.phases[fn] = anywhere // a value of the file: in a table, or given to somebody
		}
	}
	for changed := true; changed; {
		changed = false
		for _, fn := range c.functions {
			if _, is := c.roles[fn]; is {
				continue
			}
			phase := c.phases[fn] | later[fn]
			if named[fn] != nil || later[fn] == 0 {
				phase |= c.phaseOf(fn, named[fn], given)
			}
			if phase != c.phases[fn] {
				c.phases[fn], changed = phase, true
			}
		}
	}
}

// givenAway finds the functions that are given to somebody who runs them later, when that is, and where their names stand then.
func (c *checker) givenAway() (later map[*function]vm.Phase, given map[*ast.IdentExpr]bool) {
	later, given = map[*function]vm.Phase{}, map[*ast.IdentExpr]bool{}
	for _, call := range c.calls {
		if call.Func == nil {
			continue
		}
		phase := c.world.Later[c.kindOf(call.Func).path]
		for _, arg := range call.Args {
			if fn := c.functionOf(arg); fn != nil && phase != 0 {
				later[fn] |= phase
				if name, ok := arg.(*ast.IdentExpr); ok {
					given[name] = true
				}
			}
		}
	}
	return later, given
}

// phaseOf is when a function runs, as far as is known by now, beside where it was given away.
func (c *checker) phaseOf(fn *function, v *variable, given map[*ast.IdentExpr]bool) vm.Phase {
	if v == nil {
		return c.phases[fn.outer] // made and used there
	}
	phase := vm.Phase(0)
	for _, u := range v.uses {
		switch {
		case u.in == fn, given[u.ident]:
		case u.in == c.main && u.how != called && !c.isRole(u.ident):
			return anywhere
		case u.in == c.main && u.how != called:
		default:
			phase |= c.phases[u.in]
		}
	}
	return phase
}

// isRole tells whether a name stands where the script's table gets one of its functions.
func (c *checker) isRole(e *ast.IdentExpr) bool {
	_, is := c.roles[c.functionOf(e)]
	return is
}

func asFunction(e ast.Expr) *ast.FunctionExpr {
	fn, _ := e.(*ast.FunctionExpr)
	return fn
}
