package vm

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// mendAssignment works around four faults of gopher-lua's compiler, all in assignments to locals that exist. A multiple
// assignment writes a local before the values that follow have read it (a, b = b, a gives b twice). One of logic can leave
// the old value (a = not x and y). One of the first vararg (a = (...)) wipes the locals declared after a. And a call that gives exactly one value, assigned to the last parameter (s = (f(s))), puts
// the function where the parameter is before it is passed.
func (r *rewriter) mendAssignment(s *ast.AssignStmt) ast.Stmt {
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		ident, ok := s.Lhs[0].(*ast.IdentExpr)
		if !ok {
			return s
		}
		switch value := s.Rhs[0].(type) {
		case *ast.LogicalOpExpr:
			return throughLocals(s)
		case *ast.Comma3Expr:
			value.AdjustRet = false // the assignment takes one value anyway
		case *ast.FuncCallExpr:
			if ident.Value == r.last {
				value.AdjustRet = false
			}
		}
		return s
	}
	for _, left := range s.Lhs {
		if _, ok := left.(*ast.IdentExpr); ok {
			return throughLocals(s)
		}
	}
	return s
}

// throughLocals makes of a, t[k] = x, y: do local o, k, v1, v2 = t, k, x, y; o[k] = v2; a = v1 end.
func throughLocals(s *ast.AssignStmt) ast.Stmt {
	n := node{s.Line(), s.LastLine()}
	places := &ast.LocalAssignStmt{}
	values := &ast.LocalAssignStmt{Exprs: s.Rhs}
	assigns := make([]ast.Stmt, len(s.Lhs))
	keep := func(e ast.Expr) ast.Expr {
		switch e.(type) {
		case *ast.StringExpr, *ast.NumberExpr:
			return e
		}
		name := "\x00p" + strconv.Itoa(len(places.Names))
		places.Names, places.Exprs = append(places.Names, name), append(places.Exprs, single(e))
		return n.ident(name)
	}
	for i, left := range s.Lhs {
		if field, ok := left.(*ast.AttrGetExpr); ok {
			field.Object, field.Key = keep(field.Object), keep(field.Key)
		}
		name := "\x00v" + strconv.Itoa(i)
		values.Names = append(values.Names, name)
		assign := &ast.AssignStmt{Lhs: []ast.Expr{left}, Rhs: []ast.Expr{n.ident(name)}}
		n.place(assign)
		assigns[len(assigns)-1-i] = assign // Lua 5.1 assigns from right to left
	}
	stmts := append([]ast.Stmt{values}, assigns...)
	if places.Names != nil {
		n.place(places)
		stmts = append([]ast.Stmt{places}, stmts...)
	}
	do := &ast.DoBlockStmt{Stmts: stmts}
	n.place(values)
	n.place(do)
	return do
}

// single makes e give one value.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

// node makes parts of a syntax tree at a place of the source.
type node struct{ line, last int }

func (n node) place(p ast.PositionHolder) {
	p.SetLine(n.line)
	p.SetLastLine(n.last)
}

func (n node) ident(name string) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	n.place(e)
	return e
}

// keepFrames makes plain calls of tail calls of yield: gopher-lua cannot resume a coroutine that yielded in a tail call.
func keepFrames(p *lua.FunctionProto) {
	for _, call := range p.DbgCalls {
		if int(p.Code[call.Pc]>>26) == lua.OP_TAILCALL && strings.HasSuffix(call.Name, "yield") {
			p.Code[call.Pc] = p.Code[call.Pc]&(1<<26-1) | uint32(lua.OP_CALL)<<26
		}
	}
	for _, child := range p.FunctionPrototypes {
		keepFrames(child)
	}
}
