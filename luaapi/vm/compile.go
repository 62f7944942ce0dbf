package vm

import (
	"math"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// concatName is the hidden name of the function that `..` is compiled to: an opcode reaches no string limit.
const concatName = "\x00concat"

// concatGroup is how many operands one call takes, for each needs a register. Longer chains nest from the left, where Lua's `..`
// associates to the right: only __concat could tell.
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
	first := node{1, 1}
	local := &ast.LocalAssignStmt{Names: []string{concatName}, Exprs: []ast.Expr{first.ident(concatName)}}
	first.place(local)
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
	for i := range operands {
		operands[i] = single(operands[i])
	}
	for len(operands) > concatGroup {
		operands = append([]ast.Expr{concatCall(e, operands[:concatGroup])}, operands[concatGroup:]...)
	}
	return concatCall(e, operands)
}

func concatCall(at ast.PositionHolder, operands []ast.Expr) ast.Expr {
	n := node{at.Line(), at.LastLine()}
	call := &ast.FuncCallExpr{Func: n.ident(concatName), Args: operands, AdjustRet: true}
	n.place(call)
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
