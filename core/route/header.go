package route

import (
	"github.com/moongate/moongate/core"
)

// header tests the value of a header. Several lines of the name are one value, joined by ", " (RFC 9110 section 5.3).
type header struct {
	name []byte
	kind core.Kind
	test
}

func (h *header) cost() int { return costHeader + h.test.cost() }

func (h *header) holds(x *core.Exchange) bool {
	var value, joined []byte
	found := false
	for i, fields := 0, x.Request.Header.Fields(); i < len(fields); i++ {
		f := &fields[i]
		if f.Kind != h.kind || !core.EqualFold(f.Name, h.name) {
			continue
		}
		if !found {
			value, found = f.Value, true
			continue
		}
		if joined == nil {
			joined = append(make([]byte, 0, 256), value...)
		}
		joined = append(append(joined, ", "...), f.Value...)
		value = joined
	}
	return h.test.holds(value, found)
}

func newHeader(c *Condition) (*header, error) {
	key := "header." + c.Key
	name := core.Bytes(c.Key)
	if !core.IsToken(name) {
		return nil, wrong(key, "%q is no header name", c.Key)
	}
	t, err := newTest(key, c)
	return &header{name, core.KindOf(name), t}, err
}
