package lint

import (
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// checkReturn finds values that the gateway does not take from a function that it calls, such as what gw.delay gives.
func (c *checker) checkReturn(s *ast.ReturnStmt) {
	role, is := c.roles[c.fn]
	if !is || role.Returns == nil || len(s.Exprs) == 0 {
		return
	}
	what, types := c.given(s.Exprs[0])
	if types == "" {
		return
	}
	for kind := range strings.SplitSeq(strings.TrimSuffix(types, "?"), "|") {
		if kind == "any" || slices.Contains(role.Returns, kind) {
			return
		}
	}
	c.note("return", s.Line(), "return", role.name+" returns "+what+": it returns "+role.ReturnsText)
}

// given says what an expression surely gives, and of which types that is as the binding table has them; "" where that is not sure.
func (c *checker) given(e ast.Expr) (what, types string) {
	switch e := e.(type) {
	case *ast.StringExpr:
		return "a text", "string"
	case *ast.NumberExpr:
		return "a number", "number"
	case *ast.TrueExpr:
		return "true", "boolean"
	case *ast.FalseExpr:
		return "false", "boolean"
	case *ast.TableExpr:
		return "a table", "table"
	case *ast.FunctionExpr:
		return "a function", "function"
	case *ast.FuncCallExpr:
		if e.Func == nil {
			return "", ""
		}
		path := c.kindOf(e.Func).path
		f, now := c.tree.funcs[path], c.phases[c.fn]
		if f == nil || len(f.Returns) == 0 || f.Phases != 0 && f.Phases&now == 0 {
			return "", ""
		}
		return "what " + path + " gives", f.Returns[0].Type
	}
	return "", ""
}
