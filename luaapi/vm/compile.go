package vm

import (
	"math"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// concatName is the hidden name of the function that `..` is compiled to: an opcode reaches no string limit.
const concatName = "\x00concat"

// concatGroup is how many operands one call takes; longer chains nest, from the right, as `..` associates.
const concatGroup = 50

// maxNesting is the deepest syntax tree. (Lua 5.1 allows 200 levels, but does not count a + b + c as nested.)
const maxNesting = 1000

// rewriter changes a syntax tree before it is compiled: `..` becomes a call, number literals become what Lua 5.1 reads (stock
// takes 010 for octal).
type rewriter struct {
	concats bool
	depth   int
	last    string // last parameter of the function in work
}

func rewrite(script string, chunk []ast.Stmt) (out []ast.Stmt, err error) {
	r := &rewriter{}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			e.Script = script
			err = e
		default:
			panic(e)
		}
	}()
	r.block(chunk)
	if !r.concats {
		return chunk, nil
	}
	// local concat = concat: an upvalue costs 5 ns where the global would cost 30
	ident := &ast.IdentExpr{Value: concatName}
	local := &ast.LocalAssignStmt{Names: []string{concatName}, Exprs: []ast.Expr{ident}}
	for _, n := range []ast.PositionHolder{ident, local} {
		n.SetLine(1)
		n.SetLastLine(1)
	}
	return append([]ast.Stmt{local}, chunk...), nil
}

func (r *rewriter) enter(n ast.PositionHolder) {
	if r.depth++; r.depth > maxNesting {
		panic(&Error{Line: n.Line(), Message: "too many nested levels"})
	}
}

func (r *rewriter) leave() { r.depth-- }

func (r *rewriter) block(stmts []ast.Stmt) {
	for i, s := range stmts {
		r.enter(s)
		r.stmt(s)
		if a, ok := s.(*ast.AssignStmt); ok {
			stmts[i] = r.mendAssignment(a)
		}
		r.leave()
	}
}

// function walks a function's body.
func (r *rewriter) function(f *ast.FunctionExpr, method bool) {
	outer := r.last
	r.last = ""
	if method {
		r.last = "self"
	}
	if n := len(f.ParList.Names); n > 0 {
		r.last = f.ParList.Names[n-1]
	}
	r.block(f.Stmts)
	r.last = outer
}

func (r *rewriter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Lhs)
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		r.expr(&s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		r.expr(&s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		r.expr(&s.Condition)
		r.block(s.Stmts)
	case *ast.IfStmt:
		r.expr(&s.Condition)
		r.block(s.Then)
		r.elseIf(s.Else)
	case *ast.NumberForStmt:
		r.expr(&s.Init)
		r.expr(&s.Limit)
		if s.Step != nil {
			r.expr(&s.Step)
		}
		r.block(s.Stmts)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.block(s.Stmts)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			r.expr(&s.Name.Func)
		}
		if s.Name.Receiver != nil {
			r.expr(&s.Name.Receiver)
		}
		r.function(s.Func, s.Name.Method != "")
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
}

// elseIf walks a chain of elseif, which the parser nests, without counting its length as depth.
func (r *rewriter) elseIf(stmts []ast.Stmt) {
	for len(stmts) == 1 {
		next, ok := stmts[0].(*ast.IfStmt)
		if !ok {
			break
		}
		r.expr(&next.Condition)
		r.block(next.Then)
		stmts = next.Else
	}
	r.block(stmts)
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i := range list {
		r.expr(&list[i])
	}
}

func (r *rewriter) expr(p *ast.Expr) {
	r.enter(*p)
	defer r.leave()
	switch e := (*p).(type) {
	case *ast.NumberExpr:
		literal(e)
	case *ast.AttrGetExpr:
		r.expr(&e.Object)
		r.expr(&e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				r.expr(&f.Key)
			}
			r.expr(&f.Value)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			r.expr(&e.Func)
		}
		if e.Receiver != nil {
			r.expr(&e.Receiver)
		}
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		r.expr(&e.Lhs)
		r.expr(&e.Rhs)
	case *ast.RelationalOpExpr:
		r.expr(&e.Lhs)
		r.expr(&e.Rhs)
	case *ast.ArithmeticOpExpr:
		r.expr(&e.Lhs)
		r.expr(&e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.expr(&e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(&e.Expr)
	case *ast.UnaryLenOpExpr:
		r.expr(&e.Expr)
	case *ast.FunctionExpr:
		r.function(e, false)
	case *ast.StringConcatOpExpr:
		*p = r.concat(e)
	}
}

func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	r.concats = true
	operands := []ast.Expr{e.Lhs}
	rest := e.Rhs
	for {
		next, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		operands = append(operands, next.Lhs)
		rest = next.Rhs
	}
	operands = append(operands, rest)
	r.exprs(operands)
	for _, o := range operands { // each operand is one value
		switch o := o.(type) {
		case *ast.FuncCallExpr:
			o.AdjustRet = true
		case *ast.Comma3Expr:
			o.AdjustRet = true
		}
	}
	for len(operands) > concatGroup {
		cut := len(operands) - concatGroup
		operands = append(operands[:cut:cut], concatCall(e, operands[cut:]))
	}
	return concatCall(e, operands)
}

// mendAssignment works around a fault of gopher-lua's compiler: where a call that gives exactly one value is assigned to the last
// parameter (s, n = f(s), 1), the function overwrites the parameter before it is passed.
func (r *rewriter) mendAssignment(s *ast.AssignStmt) ast.Stmt {
	for i, left := range s.Lhs {
		ident, ok := left.(*ast.IdentExpr)
		if !ok || ident.Value != r.last || i >= len(s.Rhs) {
			continue
		}
		call, ok := s.Rhs[i].(*ast.FuncCallExpr)
		if !ok {
			continue
		}
		if last := i == len(s.Rhs)-1; last && i == len(s.Lhs)-1 {
			call.AdjustRet = false // the assignment takes one value anyway
		} else if !last || call.AdjustRet {
			return throughLocals(s)
		}
	}
	return s
}

// throughLocals makes "do local t1, t2 = values; a, b = t1, t2 end" of an assignment.
func throughLocals(s *ast.AssignStmt) ast.Stmt {
	local := &ast.LocalAssignStmt{Exprs: s.Rhs}
	assign := &ast.AssignStmt{Lhs: s.Lhs}
	do := &ast.DoBlockStmt{Stmts: []ast.Stmt{local, assign}}
	nodes := []ast.PositionHolder{local, assign, do}
	for i := range s.Lhs {
		name := "\x00t" + strconv.Itoa(i)
		ident := &ast.IdentExpr{Value: name}
		local.Names = append(local.Names, name)
		assign.Rhs = append(assign.Rhs, ident)
		nodes = append(nodes, ident)
	}
	for _, n := range nodes {
		n.SetLine(s.Line())
		n.SetLastLine(s.LastLine())
	}
	return do
}

func concatCall(at ast.PositionHolder, operands []ast.Expr) ast.Expr {
	ident := &ast.IdentExpr{Value: concatName}
	call := &ast.FuncCallExpr{Func: ident, Args: operands, AdjustRet: true}
	for _, n := range []ast.PositionHolder{ident, call} {
		n.SetLine(at.Line())
		n.SetLastLine(at.LastLine())
	}
	return call
}

// literal gives a number literal a spelling that gopher-lua reads as Lua 5.1 would.
func literal(e *ast.NumberExpr) {
	f, ok := ParseNumber(e.Value)
	if !ok {
		panic(&Error{Line: e.Line(), Message: "malformed number near '" + e.Value + "'"})
	}
	if math.IsInf(f, 0) {
		e.Value = "inf"
		return
	}
	e.Value = strconv.FormatFloat(f, 'g', -1, 64)
}
