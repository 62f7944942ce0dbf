package route

import (
	"bytes"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/moongate/moongate/core"
)

// maxDepth is how deep a JSON body may be nested before it counts as broken: the parser below recurses.
const maxDepth = 1000

// body asks for fields of a JSON body. It is not a predicate like the others: reading can fail, and happens once for all routes.
type body struct {
	limit  int64 // largest body that it reads, in bytes
	fields []field
}

type field struct {
	path string // gjson
	test
}

func newBody(conditions []Condition, limit int64) (*body, error) {
	if len(conditions) == 0 {
		return nil, nil
	}
	b := &body{limit: limit}
	for i := range conditions {
		key := "body." + conditions[i].Key
		if conditions[i].Key == "" {
			return nil, wrong(key, "wants a path such as \"user.name\"")
		}
		t, err := newTest(key, &conditions[i])
		if err != nil {
			return nil, err
		}
		b.fields = append(b.fields, field{conditions[i].Key, t})
	}
	return b, nil
}

// content is what a search has learned about the request's body.
type content struct {
	client Continuer // nil once it was told
	state  uint8
	err    error // reading failed: the search is over
}

const (
	contentUnknown uint8 = iota
	contentJSON          // whole and valid
	contentOther         // no JSON whatever the limit
)

// holds tells whether all fields do. Without a JSON body within the limit none does, not even one that must not exist.
func (b *body) holds(x *core.Exchange, c *content) bool {
	data, ok := c.json(&x.Request, b.limit)
	if !ok {
		return false
	}
	for i := range b.fields {
		f := &b.fields[i]
		r := gjson.GetBytes(data, f.path)
		if f.oneOf == nil && f.re == nil {
			if r.Exists() != f.exists {
				return false
			}
			continue
		}
		if r.Type == gjson.Null || r.Type == gjson.JSON || !f.test.holds(core.Bytes(r.String()), true) {
			return false
		}
	}
	return true
}

// json brings the body into memory and checks it. Bytes count, not what Content-Length says.
func (c *content) json(r *core.Request, limit int64) ([]byte, bool) {
	if c.state == contentUnknown && (r.Body.None() || !saysJSON(&r.Header)) {
		c.state = contentOther
	}
	if c.state == contentOther || r.Body.Length() > limit {
		return nil, false
	}
	if _, whole := r.Body.Whole(); !whole && c.client != nil {
		client := c.client
		c.client = nil
		if c.err = client.Continue(); c.err != nil {
			return nil, false
		}
	}
	data, err := r.Body.Buffer(limit)
	if err != nil {
		if !errors.Is(err, core.ErrBodyTooLarge) {
			c.err = err
		}
		return nil, false
	}
	if c.state == contentUnknown {
		c.state = contentOther
		if shallow(data) && gjson.ValidBytes(data) {
			c.state = contentJSON
		}
	}
	return data, c.state == contentJSON
}

// saysJSON tells whether a message announces JSON that is not compressed: application/json or a type with the suffix +json (RFC 6839).
func saysJSON(h *core.Header) bool {
	if coding := h.GetKind(core.KindContentEncoding); len(coding) > 0 && !core.EqualFoldString(coding, "identity") {
		return false
	}
	kind := h.GetKind(core.KindContentType)
	if i := bytes.IndexByte(kind, ';'); i >= 0 {
		kind = kind[:i]
	}
	kind = core.Trim(kind)
	return core.EqualFoldString(kind, "application/json") ||
		bytes.IndexByte(kind, '/') > 0 && len(kind) > 5 && core.EqualFoldString(kind[len(kind)-5:], "+json")
}

// shallow tells whether brackets outside of strings are nested no deeper than maxDepth.
func shallow(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			if depth++; depth > maxDepth {
				return false
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return true
}
