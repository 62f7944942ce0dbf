package route

import (
	"bytes"

	"github.com/moongate/moongate/core"
)

// cookie tests the first value of a cookie, as the Cookie lines carry it (RFC 6265 section 5.4): case counts in its name, and quotes
// are part of its value.
type cookie struct {
	name string
	test
}

func (c *cookie) cost() int { return costCookie + c.test.cost() }

func (c *cookie) holds(x *core.Exchange) bool {
	for i, fields := 0, x.Request.Header.Fields(); i < len(fields); i++ {
		if fields[i].Kind != core.KindCookie {
			continue
		}
		if value, found := cookieValue(fields[i].Value, c.name); found {
			return c.test.holds(value, true)
		}
	}
	return c.test.holds(nil, false)
}

func cookieValue(line []byte, name string) (value []byte, found bool) {
	for len(line) > 0 {
		pair := line
		if i := bytes.IndexByte(line, ';'); i >= 0 {
			pair, line = line[:i], line[i+1:]
		} else {
			line = nil
		}
		key, value, ok := bytes.Cut(pair, []byte{'='})
		if ok && string(core.Trim(key)) == name {
			return core.Trim(value), true
		}
	}
	return nil, false
}

func newCookie(c *Condition) (*cookie, error) {
	key := "cookie." + c.Key
	if !core.IsToken(core.Bytes(c.Key)) {
		return nil, wrong(key, "%q is no cookie name", c.Key)
	}
	t, err := newTest(key, c)
	return &cookie{c.Key, t}, err
}
