package stdlib_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
)

func TestEveryFunctionIsDocumented(t *testing.T) {
	for _, f := range base(t, vm.Options{}).Funcs() {
		if !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: doc %q is no sentence", f.Name, f.Doc)
		}
		for _, p := range append(append([]vm.Param{}, f.Params...), f.Returns...) {
			if p.Name == "" || p.Type == "" {
				t.Errorf("%s: parameter or result %q has no name or type", f.Name, p.Name)
			}
		}
	}
}
