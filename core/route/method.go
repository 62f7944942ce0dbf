package route

import (
	"slices"
	"strings"

	"github.com/moongate/moongate/core"
)

// method asks for one of some methods.
type method []string

func (m method) cost() int { return costMethod }

func (m method) holds(x *core.Exchange) bool {
	for _, s := range m {
		if x.Request.Method == s {
			return true
		}
	}
	return false
}

var standardMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}

func newMethod(methods []string) (method, error) {
	for _, m := range methods {
		if !core.IsToken(core.Bytes(m)) {
			return nil, wrong("method", "%q is no method", m)
		}
		if up := strings.ToUpper(m); up != m && slices.Contains(standardMethods, up) {
			return nil, wrong("method", "%q: case counts, write %q", m, up)
		}
	}
	return methods, nil
}
