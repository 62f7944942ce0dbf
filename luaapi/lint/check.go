package lint

import (
	"maps"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/vm"
)

// checker holds one file against the world.
type checker struct {
	*file
	world *World
	tree  *tree
	lines []string
	found []Finding

	roles    map[*function]Function
	phases   map[*function]vm.Phase
	settings *ast.TableExpr  // the script's config, nil when it is not to be seen
	read     map[string]bool // settings that some function reads
	escapes  bool            // conf went where nobody sees what is read
	table    *variable       // the local that is the script's table, nil when there is none

	fn *function // in work
}

func (c *checker) run() {
	c.fn = c.main
	c.block(c.chunk)
	c.checkLocals()
	c.checkSettings()
}

func (c *checker) block(stmts []ast.Stmt) {
	for _, s := range stmts {
		c.stmt(s)
	}
}

func (c *checker) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		c.exprs(s.Rhs)
		for _, e := range s.Lhs {
			c.assign(e)
		}
	case *ast.LocalAssignStmt:
		c.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		c.checkReply(s)
		c.expr(s.Expr)
	case *ast.DoBlockStmt:
		c.block(s.Stmts)
	case *ast.WhileStmt:
		c.expr(s.Condition)
		c.block(s.Stmts)
	case *ast.RepeatStmt:
		c.block(s.Stmts)
		c.expr(s.Condition)
	case *ast.IfStmt:
		c.expr(s.Condition)
		c.block(s.Then)
		c.block(s.Else)
	case *ast.NumberForStmt:
		c.exprs([]ast.Expr{s.Init, s.Limit})
		if s.Step != nil {
			c.expr(s.Step)
		}
		c.block(s.Stmts)
	case *ast.GenericForStmt:
		c.exprs(s.Exprs)
		c.block(s.Stmts)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			c.assign(s.Name.Func)
		}
		c.function(s.Func)
	case *ast.ReturnStmt:
		c.checkReturn(s)
		c.exprs(s.Exprs)
	}
}

func (c *checker) function(e *ast.FunctionExpr) {
	outer := c.fn
	c.fn = c.functions[e]
	c.block(e.Stmts)
	c.fn = outer
}

func (c *checker) exprs(list []ast.Expr) {
	for _, e := range list {
		c.expr(e)
	}
}

func (c *checker) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		c.ident(e)
	case *ast.AttrGetExpr:
		c.index(e)
		if c.kindOf(e.Object).handle != "conf" {
			c.expr(e.Object)
		}
		c.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				c.expr(f.Key)
			}
			c.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		c.call(e)
	case *ast.FunctionExpr:
		c.function(e)
	default:
		c.exprs(operands(e))
	}
}

// ident looks at a name that is read.
func (c *checker) ident(e *ast.IdentExpr) {
	if c.names[e] == nil && !c.globals[e.Value] && e.Value != "_G" && !slices.Contains(c.tree.spaces[""], e.Value) {
		hint, known := elsewhere[e.Value]
		if !known {
			hint = meant(e.Value, c.tree.spaces[""])
		}
		c.note("global", e.Line(), e.Value, "global '"+e.Value+"' is not defined, it is always nil"+hint)
	}
	if c.kindOf(e).handle == "conf" {
		c.escapes = true
	}
}

// index looks at e.key.
func (c *checker) index(e *ast.AttrGetExpr) {
	c.uncalled(e)
	of := c.kindOf(e.Object)
	key, constant := e.Key.(*ast.StringExpr)
	switch {
	case of.handle == "conf" && !constant:
		c.escapes = true
	case !constant:
	case of.handle == "conf":
		c.setting(key.Value, key.Line())
	case of.path != "" && c.tree.spaces[of.path] != nil && !slices.Contains(c.tree.spaces[of.path], key.Value):
		c.note("name", key.Line(), key.Value, of.path+" has no '"+key.Value+"': it has "+c.tree.members(of.path)+meant(key.Value, c.tree.spaces[of.path]))
	case of.handle != "":
		c.field(of.handle, key)
	}
}

// field looks at a field of a handle whose fields are known.
func (c *checker) field(handle string, key *ast.StringExpr) {
	fields := c.world.Handles[handle]
	if _, ok := fields[key.Value]; ok || len(fields) == 0 || c.tree.methods[handle][key.Value] {
		return
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	var methods []string
	for name := range c.tree.methods[handle] {
		methods = append(methods, name+"()")
	}
	slices.Sort(methods)
	c.note("field", key.Line(), key.Value, handle+" has no '"+key.Value+"': it has "+strings.Join(append(names, methods...), ", ")+meant(key.Value, names))
}

// meant is a hint at the name that an unknown one may have meant.
func meant(name string, known []string) string {
	if near := conf.Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// call looks at a call: whether it is made with the right sign, at the right time.
func (c *checker) call(e *ast.FuncCallExpr) {
	defer c.exprs(e.Args)
	if e.Receiver != nil {
		c.methodCall(e)
		c.expr(e.Receiver)
		return
	}
	if at, ok := e.Func.(*ast.AttrGetExpr); ok {
		key, constant := at.Key.(*ast.StringExpr)
		if of := c.kindOf(at.Object); constant && of.handle != "" && c.tree.methods[of.handle][key.Value] {
			if !c.passesSelf(at.Object, e.Args) {
				c.note("colon", key.Line(), key.Value, "call "+of.handle+":"+key.Value+" with a colon")
			}
			c.timely(c.tree.funcs[of.handle+":"+key.Value], key.Line(), key.Value)
		}
	}
	if k := c.kindOf(e.Func); k.path != "" {
		name := k.path[strings.LastIndexByte(k.path, '.')+1:]
		line := e.Line()
		if at, ok := e.Func.(*ast.AttrGetExpr); ok {
			line = at.Key.Line()
		}
		c.timely(c.tree.funcs[k.path], line, name)
		c.calledSpace(k.path, line, name)
	}
	c.expr(e.Func)
}

// passesSelf tells whether req.body(req) is written in full.
func (c *checker) passesSelf(object ast.Expr, args []ast.Expr) bool {
	if len(args) == 0 {
		return false
	}
	k := c.kindOf(args[0])
	return k.handle != "" && k == c.kindOf(object)
}

func (c *checker) methodCall(e *ast.FuncCallExpr) {
	of := c.kindOf(e.Receiver)
	switch {
	case of.path != "" && slices.Contains(c.tree.spaces[of.path], e.Method):
		c.note("colon", e.Line(), e.Method, "call "+of.path+"."+e.Method+" with a dot")
	case of.path != "" && c.tree.spaces[of.path] != nil:
		c.note("name", e.Line(), e.Method, of.path+" has no '"+e.Method+"': it has "+c.tree.members(of.path)+meant(e.Method, c.tree.spaces[of.path]))
	case of.handle == "" || of.handle == "conf":
	case c.tree.methods[of.handle][e.Method]:
		c.timely(c.tree.funcs[of.handle+":"+e.Method], e.Line(), e.Method)
	case of.handle == "headers" || of.handle == "query" || of.handle == "cookies":
		c.notAMethod(of.handle, e)
	default:
		if _, is := c.world.Handles[of.handle][e.Method]; is {
			c.note("colon", e.Line(), e.Method, of.handle+"."+e.Method+" is a field, not a method")
		} else if len(c.world.Handles[of.handle]) > 0 {
			c.field(of.handle, &ast.StringExpr{ConstExprBase: ast.ConstExprBase{ExprBase: ast.ExprBase{Node: nodeAt(e)}}, Value: e.Method})
		}
	}
}

func nodeAt(e ast.PositionHolder) (n ast.Node) {
	n.SetLine(e.Line())
	n.SetLastLine(e.LastLine())
	return n
}

// timely looks at when a function is called.
func (c *checker) timely(f *vm.Func, line int, word string) {
	now := c.phases[c.fn]
	if f == nil || f.Phases == 0 || now == 0 || now == anywhere || f.Phases&now != 0 {
		return
	}
	c.note("phase", line, word, f.Name+" cannot be called in "+c.phaseNames(now)+": it may be called in "+c.phaseNames(f.Phases))
}

// phaseNames names the bits of a phase.
func (c *checker) phaseNames(p vm.Phase) string {
	var list []string
	for i, name := range c.world.Phases {
		if p&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

// checkReply finds decisions that are made and not given.
func (c *checker) checkReply(s *ast.FuncCallStmt) {
	call, ok := s.Expr.(*ast.FuncCallExpr)
	if !ok || call.Func == nil {
		return
	}
	if name := c.kindOf(call.Func).path; name == "gw.respond" || name == "gw.redirect" {
		c.note("reply", s.Line(), strings.TrimPrefix(name, "gw."), name+" answers nobody by itself: write return "+name+"(...)")
	}
}

// assign looks at what is assigned to.
func (c *checker) assign(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		v := c.names[e]
		switch {
		case v == nil && c.fn != c.main:
			c.note("global", e.Line(), e.Value, "function sets global '"+e.Value+"': that is an error after the script is loaded; write 'local "+e.Value+"'")
		case v != nil && v.of == c.main && c.fn != c.main && c.phases[c.fn] != c.world.Load:
			c.note("state", e.Line(), e.Value, "function assigns to the file-level local '"+e.Value+"': each VM has its own, the next request may see another")
		}
	case *ast.AttrGetExpr:
		c.assignField(e)
		c.expr(e.Object)
		c.expr(e.Key)
	default:
		c.expr(e)
	}
}

// assignField looks at e.key = ... on a handle.
func (c *checker) assignField(e *ast.AttrGetExpr) {
	of := c.kindOf(e.Object)
	key, constant := e.Key.(*ast.StringExpr)
	switch {
	case of.handle == "conf":
		c.note("field", e.Line(), "conf", "conf is read-only")
	case of.path != "":
		c.note("name", e.Line(), of.path, of.path+" is read-only")
	case c.ofTable(e.Object) && c.fn != c.main && c.phases[c.fn] != c.world.Load:
		c.note("state", e.Line(), "", "function assigns to a field of the script's table: each VM has its own, the next request may see another")
	case !constant || of.handle == "":
	case c.tree.methods[of.handle][key.Value] && len(c.world.Handles[of.handle]) > 0:
		c.note("field", e.Line(), key.Value, of.handle+":"+key.Value+" is a method, nothing to assign to")
	default:
		c.field(of.handle, key)
		if f, ok := c.world.Handles[of.handle][key.Value]; ok && !f.Writable {
			c.note("field", e.Line(), key.Value, of.handle+"."+key.Value+" is read-only")
		}
	}
}

// checkLocals finds functions that nothing calls.
func (c *checker) checkLocals() {
	for _, v := range c.locals {
		fn := c.functions[asFunction(v.init)]
		if fn == nil || strings.HasPrefix(v.name, "_") || v.assigned {
			continue
		}
		if !slices.ContainsFunc(v.uses, func(u use) bool { return !within(u.in, fn) }) {
			c.note("unused", v.line, v.name, "function '"+v.name+"' is never called"+c.nearest(v.name))
		}
	}
}

// nearest is a hint when a name looks like one that the gateway calls.
func (c *checker) nearest(name string) string {
	known := slices.Sorted(maps.Keys(c.world.Functions))
	if !slices.Contains(known, name) {
		name = conf.Nearest(name, known)
	}
	if name == "" {
		return ""
	}
	return ": the gateway calls M." + name + ", a field of the script's table"
}

func within(f, outer *function) bool {
	for ; f != nil; f = f.outer {
		if f == outer {
			return true
		}
	}
	return false
}

// setting notes that a setting is read.
func (c *checker) setting(name string, line int) {
	c.read[name] = true
	if c.settings == nil || name == "state" || slices.Contains(c.declared(), name) {
		return
	}
	c.note("setting", line, name, "conf has no '"+name+"': the script's config declares "+strings.Join(c.declared(), ", ")+meant(name, c.declared()))
}

// declared are the names of the settings, in the order of the script.
func (c *checker) declared() (names []string) {
	for _, f := range c.settings.Fields {
		if key, ok := f.Key.(*ast.StringExpr); ok {
			names = append(names, key.Value)
		}
	}
	return names
}

// checkSettings finds settings that nothing reads.
func (c *checker) checkSettings() {
	if c.settings == nil || c.escapes {
		return
	}
	for _, f := range c.settings.Fields {
		key, ok := f.Key.(*ast.StringExpr)
		if ok && !c.read[key.Value] && !slices.Contains(c.world.Native, key.Value) {
			c.note("setting", max(key.Line(), f.Value.Line()), key.Value, "setting '"+key.Value+"' is never read")
		}
	}
}
