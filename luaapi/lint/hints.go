package lint

import (
	"github.com/yuin/gopher-lua/ast"
)

// elsewhere tells of names that are no global here and are known from somewhere else.
var elsewhere = map[string]string{
	"ngx":   "; what OpenResty has is told in docs/coming-from/nginx.md",
	"kong":  "; what Kong has is told in docs/coming-from/kong.md",
	"req":   "; it is what on_request gets: in on_response it is res.req, in on_log entry.req",
	"res":   "; it is what on_response gets: in on_log it is entry.res",
	"entry": "; it is what on_log gets",
	"ctx":   "; it is the second of what every function gets",
	"conf":  "; it is the last of what functions get",
}

// notAMethod is the finding that a handle of names and values has no such method.
func (c *checker) notAMethod(handle string, e *ast.FuncCallExpr) {
	methods := map[string]string{"headers": " and has :all(name) and :add(name, value)"}
	c.note("field", e.Line(), e.Method, handle+" has no method '"+e.Method+"': it is read by "+handle+"[\"NAME\"], set by "+handle+"[\"NAME\"] = value"+methods[handle])
}

// uncalled finds a method that is looked into, such as req.json.a.
func (c *checker) uncalled(e *ast.AttrGetExpr) {
	at, ok := e.Object.(*ast.AttrGetExpr)
	if !ok {
		return
	}
	key, constant := at.Key.(*ast.StringExpr)
	if of := c.kindOf(at.Object).handle; constant && len(c.world.Handles[of]) > 0 && c.tree.methods[of][key.Value] {
		c.note("colon", key.Line(), key.Value, of+":"+key.Value+" is a method: write "+of+":"+key.Value+"()")
	}
}

// calledSpace finds a namespace that is called, such as gw.log("x").
func (c *checker) calledSpace(path string, line int, word string) {
	if c.tree.funcs[path] == nil && c.tree.spaces[path] != nil {
		c.note("name", line, word, path+" is no function: it has "+c.tree.members(path))
	}
}

// ofTable tells whether an expression is the script's table.
func (c *checker) ofTable(e ast.Expr) bool {
	name, ok := e.(*ast.IdentExpr)
	return ok && c.table != nil && c.names[name] == c.table
}
