package lint

import (
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"github.com/moongate/moongate/luaapi/vm"
)

// tree is the binding table by name.
type tree struct {
	funcs   map[string]*vm.Func        // by dotted name
	spaces  map[string][]string        // members by namespace, "" for globals
	methods map[string]map[string]bool // by handle
}

func newTree(w *World) *tree {
	t := &tree{funcs: map[string]*vm.Func{}, spaces: map[string][]string{}, methods: map[string]map[string]bool{"headers": {"all": true, "add": true}}}
	for i := range w.Funcs {
		f := &w.Funcs[i]
		if owner, method, ok := strings.Cut(f.Name, ":"); ok {
			if t.methods[owner] == nil {
				t.methods[owner] = map[string]bool{}
			}
			t.methods[owner][method] = true
		}
		t.funcs[f.Name] = f
		if !strings.Contains(f.Name, ":") {
			t.add(f.Name)
		}
	}
	for _, name := range w.Values {
		t.add(name)
	}
	return t
}

func (t *tree) add(name string) {
	space, member := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		space, member = name[:i], name[i+1:]
	}
	if slices.Contains(t.spaces[space], member) {
		return
	}
	t.spaces[space] = append(t.spaces[space], member)
	if space != "" {
		t.add(space)
	}
}

// members lists what a namespace has.
func (t *tree) members(space string) string {
	list := slices.Clone(t.spaces[space])
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// kind is what is known of an expression: a dotted name of the binding table, or a handle; neither when nothing is known.
type kind struct {
	path   string
	handle string
}

// kindOf finds out what an expression is.
func (c *checker) kindOf(e ast.Expr) kind { return c.kindAt(e, 0) }

const farthest = 20 // steps from one local to another

func (c *checker) kindAt(e ast.Expr, depth int) kind {
	if depth > farthest {
		return kind{}
	}
	switch e := e.(type) {
	case *ast.IdentExpr:
		v := c.names[e]
		switch {
		case v == nil && c.tree.spaces[e.Value] != nil && !c.globals[e.Value]:
			return kind{path: e.Value}
		case v == nil || v.assigned:
			return kind{}
		case v.handle != "":
			return kind{handle: v.handle}
		case v.init != nil:
			return c.kindAt(v.init, depth+1)
		}
	case *ast.AttrGetExpr:
		key, ok := e.Key.(*ast.StringExpr)
		if !ok {
			return kind{}
		}
		switch of := c.kindAt(e.Object, depth+1); {
		case of.path != "" && slices.Contains(c.tree.spaces[of.path], key.Value):
			return kind{path: of.path + "." + key.Value}
		case of.handle != "":
			return kind{handle: c.world.Handles[of.handle][key.Value].Handle}
		}
	}
	return kind{}
}

// functionOf is the function of the file that an expression stands for, nil when it is not known.
func (c *checker) functionOf(e ast.Expr) *function {
	for range farthest {
		switch x := e.(type) {
		case *ast.FunctionExpr:
			return c.functions[x]
		case *ast.IdentExpr:
			v := c.names[x]
			if v == nil || v.assigned || v.init == nil {
				return nil
			}
			e = v.init
		default:
			return nil
		}
	}
	return nil
}

// tableOf is the table constructor that an expression stands for, and the name by which it is known.
func (c *checker) tableOf(e ast.Expr) (*ast.TableExpr, *variable) {
	switch e := e.(type) {
	case *ast.TableExpr:
		return e, nil
	case *ast.IdentExpr:
		v := c.names[e]
		if v == nil || v.assigned {
			return nil, nil
		}
		t, _ := v.init.(*ast.TableExpr)
		return t, v
	}
	return nil, nil
}
