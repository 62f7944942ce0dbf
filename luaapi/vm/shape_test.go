package vm_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// shaped is a table of a shape and one that was filled by hand; the two must not be told apart.
func shaped(t *testing.T, names ...string) (*vm.Shape, *lua.LTable, *lua.LTable) {
	t.Helper()
	base(t, vm.Options{}) // finds the layout
	s := vm.NewShape(names)
	if s == nil {
		t.Fatal("no shape")
	}
	values := make([]lua.LValue, len(names))
	byHand := &lua.LTable{Metatable: lua.LNil}
	for i, name := range names {
		values[i] = lua.LNumber(i)
		byHand.RawSetString(name, values[i])
	}
	return s, s.Table(values), byHand
}

// contents walks a table as next does.
func contents(t *lua.LTable) string {
	text := ""
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		text += fmt.Sprint(k, "=", v, " ")
	}
	return text
}

func TestATableOfAShapeIsLikeOneFilledByHand(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"b", "a", ""}, {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10"}} {
		_, made, byHand := shaped(t, names...)
		for i, step := range []func(*lua.LTable){
			func(*lua.LTable) {},
			func(u *lua.LTable) { u.RawSetString("new", lua.LTrue) },
			func(u *lua.LTable) { u.RawSetString(names[0], lua.LNil) },
			func(u *lua.LTable) { u.RawSetInt(1, lua.LString("item")) },
			func(u *lua.LTable) { u.RawSet(lua.LTrue, lua.LString("odd")) },
			func(u *lua.LTable) { u.RawSetString(names[0], lua.LString("again")) },
		} {
			step(made)
			step(byHand)
			if got, want := contents(made), contents(byHand); got != want || made.Len() != byHand.Len() {
				t.Fatalf("%v after step %d: %q, want %q", names, i, got, want)
			}
		}
	}
}

func TestTablesOfOneShapeShareNothing(t *testing.T) {
	s, first, _ := shaped(t, "a", "b")
	second := s.Table([]lua.LValue{lua.LNumber(7), lua.LNumber(8)})
	first.RawSetString("c", lua.LTrue)
	second.RawSetString("d", lua.LTrue)
	second.RawSetString("c", lua.LFalse)
	first.RawSetString("a", lua.LNil)
	third := s.Table([]lua.LValue{lua.LNumber(1), lua.LNumber(2)})
	for want, u := range map[string]*lua.LTable{"b=1 c=true ": first, "a=7 b=8 d=true c=false ": second, "a=1 b=2 ": third} {
		if got := contents(u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAShapeIsForNamesThatDiffer(t *testing.T) {
	if vm.NewShape([]string{"a", "b", "a"}) != nil {
		t.Error("a shape with one name twice")
	}
}

func TestAShapeMakesTablesInManyGoroutines(t *testing.T) {
	s, _, _ := shaped(t, "a", "b", "c")
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for i := range 200 {
				u := s.Table([]lua.LValue{lua.LNumber(i), lua.LTrue, lua.LFalse})
				u.RawSetString(fmt.Sprint(i), lua.LTrue)
				if u.RawGetString("a") != lua.LNumber(i) {
					t.Error("another's value")
				}
			}
		})
	}
	done.Wait()
}

func TestKeysAreThoseBesideTheItems(t *testing.T) {
	u := &lua.LTable{Metatable: lua.LNil}
	for _, k := range []string{"x", "y", "z"} {
		u.RawSetString(k, lua.LTrue)
	}
	u.RawSetInt(1, lua.LTrue)
	u.RawSetString("y", lua.LNil)
	if got := fmt.Sprint(vm.Keys(u)); got != "[x y z]" {
		t.Error(got)
	}
}
