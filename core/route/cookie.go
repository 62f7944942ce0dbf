package route

import "github.com/moongate/moongate/core"

// cookie tests the first value of a cookie, as the Cookie lines carry it (RFC 6265 section 5.4): case counts in its name, and quotes
// are part of its value.
type cookie struct {
	name string
	test
}

func (c *cookie) cost() int { return costCookie + c.test.cost() }

func (c *cookie) holds(x *core.Exchange) bool {
	value, found := x.Request.Header.Cookie(c.name)
	return c.test.holds(value, found)
}

func newCookie(c *Condition) (*cookie, error) {
	key := "cookie." + c.Key
	if !core.IsToken(core.Bytes(c.Key)) {
		return nil, wrong(key, "%q is no cookie name", c.Key)
	}
	t, err := newTest(key, c)
	return &cookie{c.Key, t}, err
}
