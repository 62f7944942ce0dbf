package lint

import (
	"github.com/yuin/gopher-lua/ast"
)

// file is a syntax tree whose names have been resolved.
type file struct {
	chunk     []ast.Stmt
	main      *function
	functions map[*ast.FunctionExpr]*function
	names     map[*ast.IdentExpr]*variable // nil: a global
	locals    []*variable
	calls     []*ast.FuncCallExpr
	globals   map[string]bool // that the file sets
}

// function is one function of the file, or the file itself.
type function struct {
	expr   *ast.FunctionExpr
	outer  *function // nil for the file itself
	params []*variable
}

// variable is a local name.
type variable struct {
	name     string
	line     int
	of       *function
	init     ast.Expr // what it was declared with, nil when that is not one expression
	assigned bool     // again, after its declaration
	handle   string   // what it is when the gateway gives it
	uses     []use
}

// use is one place where a variable is read.
type use struct {
	ident *ast.IdentExpr
	in    *function
	how   usage
}

type usage uint8

const (
	valued  usage = iota // as a value: it may go anywhere
	called               // as what is called
	indexed              // as what is indexed
)

// resolver walks a tree once and says which name is which.
type resolver struct {
	*file
	fn    *function
	scope []map[string]*variable
}

func resolve(chunk []ast.Stmt) *file {
	f := &file{chunk: chunk, main: &function{}, functions: map[*ast.FunctionExpr]*function{}, names: map[*ast.IdentExpr]*variable{}, globals: map[string]bool{}}
	r := &resolver{file: f, fn: f.main}
	r.block(chunk)
	return f
}

func (r *resolver) block(stmts []ast.Stmt) {
	r.open()
	r.stmts(stmts)
	r.close()
}

func (r *resolver) open()  { r.scope = append(r.scope, map[string]*variable{}) }
func (r *resolver) close() { r.scope = r.scope[:len(r.scope)-1] }

func (r *resolver) declare(name string, line int, init ast.Expr) *variable {
	v := &variable{name: name, line: line, of: r.fn, init: init}
	r.scope[len(r.scope)-1][name] = v
	r.locals = append(r.locals, v)
	return v
}

func (r *resolver) find(name string) *variable {
	for i := len(r.scope) - 1; i >= 0; i-- {
		if v := r.scope[i][name]; v != nil {
			return v
		}
	}
	return nil
}

func (r *resolver) stmts(list []ast.Stmt) {
	for _, s := range list {
		r.stmt(s)
	}
}

func (r *resolver) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Rhs)
		for _, e := range s.Lhs {
			r.assign(e)
		}
	case *ast.LocalAssignStmt:
		r.local(s)
	case *ast.FuncCallStmt:
		r.expr(s.Expr, valued)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		r.expr(s.Condition, valued)
		r.block(s.Stmts)
	case *ast.RepeatStmt: // whose condition sees the block's names
		r.open()
		r.stmts(s.Stmts)
		r.expr(s.Condition, valued)
		r.close()
	case *ast.IfStmt:
		r.expr(s.Condition, valued)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.expr(s.Init, valued)
		r.expr(s.Limit, valued)
		if s.Step != nil {
			r.expr(s.Step, valued)
		}
		r.open()
		r.declare(s.Name, s.Line(), nil)
		r.stmts(s.Stmts)
		r.close()
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.open()
		for _, name := range s.Names {
			r.declare(name, s.Line(), nil)
		}
		r.stmts(s.Stmts)
		r.close()
	case *ast.FuncDefStmt:
		r.define(s)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
}

// local declares names. A function sees its own name, as `local function` wants it.
func (r *resolver) local(s *ast.LocalAssignStmt) {
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if fn, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			r.declare(s.Names[0], s.Line(), fn)
			r.function(fn, false)
			return
		}
	}
	r.exprs(s.Exprs)
	for i, name := range s.Names {
		var init ast.Expr
		if len(s.Exprs) == len(s.Names) {
			init = s.Exprs[i]
		}
		r.declare(name, s.Line(), init)
	}
}

func (r *resolver) define(s *ast.FuncDefStmt) {
	if s.Name.Receiver != nil {
		r.expr(s.Name.Receiver, indexed)
	}
	if s.Name.Func != nil {
		r.assign(s.Name.Func)
	}
	r.function(s.Func, s.Name.Method != "")
}

// assign resolves what is assigned to.
func (r *resolver) assign(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if v := r.find(e.Value); v != nil {
			v.assigned = true
			r.names[e] = v
		} else if r.fn == r.main {
			r.globals[e.Value] = true
		}
	case *ast.AttrGetExpr:
		r.expr(e.Object, indexed)
		r.expr(e.Key, valued)
	default:
		r.expr(e, valued)
	}
}

func (r *resolver) function(e *ast.FunctionExpr, method bool) {
	f := &function{expr: e, outer: r.fn}
	r.functions[e] = f
	r.fn = f
	r.open()
	if method {
		f.params = append(f.params, r.declare("self", e.Line(), nil))
	}
	for _, name := range e.ParList.Names {
		f.params = append(f.params, r.declare(name, e.Line(), nil))
	}
	r.stmts(e.Stmts)
	r.close()
	r.fn = f.outer
}

func (r *resolver) exprs(list []ast.Expr) {
	for _, e := range list {
		r.expr(e, valued)
	}
}

func (r *resolver) expr(e ast.Expr, how usage) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if v := r.find(e.Value); v != nil {
			r.names[e] = v
			v.uses = append(v.uses, use{e, r.fn, how})
		}
	case *ast.AttrGetExpr:
		r.expr(e.Object, indexed)
		r.expr(e.Key, valued)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				r.expr(f.Key, valued)
			}
			r.expr(f.Value, valued)
		}
	case *ast.FuncCallExpr:
		r.calls = append(r.calls, e)
		if e.Func != nil {
			r.expr(e.Func, called)
		}
		if e.Receiver != nil {
			r.expr(e.Receiver, indexed)
		}
		r.exprs(e.Args)
	case *ast.FunctionExpr:
		r.function(e, false)
	default:
		for _, part := range operands(e) {
			r.expr(part, valued)
		}
	}
}

// operands are what an operator works on.
func operands(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.RelationalOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.StringConcatOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.ArithmeticOpExpr:
		return []ast.Expr{e.Lhs, e.Rhs}
	case *ast.UnaryMinusOpExpr:
		return []ast.Expr{e.Expr}
	case *ast.UnaryNotOpExpr:
		return []ast.Expr{e.Expr}
	case *ast.UnaryLenOpExpr:
		return []ast.Expr{e.Expr}
	}
	return nil
}
