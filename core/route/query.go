package route

import (
	"bytes"

	"github.com/moongate/moongate/core"
)

// query tests the first value of a query parameter.
type query struct {
	name string
	test
}

func (q *query) cost() int { return costQuery + q.test.cost() }

func (q *query) holds(x *core.Exchange) bool {
	value, found := queryValue(x.Request.RawQuery, q.name)
	return q.test.holds(value, found)
}

// queryValue is the first value of a name. The query is split at '&' only. Names and values are percent-decoded and their '+' is a
// space (WHATWG URL, application/x-www-form-urlencoded); a pair that cannot be decoded stays as it came. The value is part of raw where
// nothing was encoded.
func queryValue(raw []byte, name string) (value []byte, found bool) {
	for len(raw) > 0 {
		pair := raw
		if i := bytes.IndexByte(raw, '&'); i >= 0 {
			pair, raw = raw[:i], raw[i+1:]
		} else {
			raw = nil
		}
		if len(pair) == 0 {
			continue
		}
		key, value, _ := bytes.Cut(pair, []byte{'='})
		if !encoded(pair) {
			if string(key) == name {
				return value, true
			}
			continue
		}
		broken := !decodable(pair)
		if broken && string(key) == name {
			return value, true
		}
		if !broken && decodesTo(key, name) {
			return formDecode(value), true
		}
	}
	return nil, false
}

func encoded(pair []byte) bool {
	return bytes.IndexByte(pair, '%') >= 0 || bytes.IndexByte(pair, '+') >= 0
}

func decodable(pair []byte) bool {
	for i := 0; i < len(pair); i++ {
		if pair[i] == '%' {
			if _, ok := unhex(pair[i+1:]); !ok {
				return false
			}
			i += 2
		}
	}
	return true
}

// decodesTo tells whether a decodable piece decodes to want.
func decodesTo(piece []byte, want string) bool {
	n := 0
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch c {
		case '%':
			c, _ = unhex(piece[i+1:])
			i += 2
		case '+':
			c = ' '
		}
		if n >= len(want) || want[n] != c {
			return false
		}
		n++
	}
	return n == len(want)
}

// formDecode decodes a decodable piece.
func formDecode(piece []byte) []byte {
	if !encoded(piece) {
		return piece
	}
	out := make([]byte, 0, len(piece))
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch c {
		case '%':
			c, _ = unhex(piece[i+1:])
			i += 2
		case '+':
			c = ' '
		}
		out = append(out, c)
	}
	return out
}

func newQuery(c *Condition) (*query, error) {
	key := "query." + c.Key
	if c.Key == "" {
		return nil, wrong(key, "a parameter has a name")
	}
	t, err := newTest(key, c)
	return &query{c.Key, t}, err
}
