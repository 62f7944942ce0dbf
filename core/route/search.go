package route

import "github.com/moongate/moongate/core"

// search is one request's way through the trees. Its methods return true when the search is over: found or failed.
type search struct {
	x       *core.Exchange
	view    []byte // the matcher's view of the path
	random  func(uint64) uint64
	content content
	found   *core.Route
}

// tree looks through one host's rules in the order of their paths.
func (s *search) tree(t *tree) bool {
	if len(t.exact) > 0 {
		if l := t.exact[string(s.view)]; l != nil && s.take(*l) {
			return true
		}
	}
	rooted := len(s.view) > 0 && s.view[0] == '/'
	if rooted {
		tail := s.view[1:]
		if t.root.fixed && s.fixed(&t.root, tail) || t.root.open && s.under(&t.root, tail) {
			return true
		}
	}
	return s.take(t.regexps) || rooted && s.take(t.root.deep) || s.take(t.root.rest)
}

// fixed looks for a pattern that has as many segments as the path. tail is what follows the slash, nil at the end.
func (s *search) fixed(n *node, tail []byte) bool {
	if tail == nil {
		return s.take(n.end)
	}
	segment, tail := cutSegment(tail)
	if c := n.literals[string(segment)]; c != nil && c.fixed && s.fixed(c, tail) {
		return true
	}
	if len(segment) == 0 {
		return false
	}
	return n.named != nil && n.named.fixed && s.fixed(n.named, tail) ||
		n.single != nil && n.single.fixed && s.fixed(n.single, tail)
}

// open looks for a pattern that ends with any number of segments, the one that keeps longest to single segments first.
func (s *search) open(n *node, tail []byte) bool {
	return tail != nil && s.under(n, tail) || s.take(n.deep) || tail != nil && s.take(n.below) || s.take(n.rest)
}

// under is open without the patterns of the node itself.
func (s *search) under(n *node, tail []byte) bool {
	segment, tail := cutSegment(tail)
	if c := n.literals[string(segment)]; c != nil && c.open && s.open(c, tail) {
		return true
	}
	if len(segment) == 0 {
		return false
	}
	return n.named != nil && n.named.open && s.open(n.named, tail) ||
		n.single != nil && n.single.open && s.open(n.single, tail)
}

// take gives the request to the first candidate that accepts it.
func (s *search) take(l list) bool {
	for _, c := range l {
		if !s.accepts(c) {
			if s.content.err != nil {
				return true
			}
			continue
		}
		m := c.pick(s.random)
		s.found = m.route
		if m.names != nil {
			m.names.match(s.view, s.x.Request.Path, &s.x.Request.Params)
		}
		return true
	}
	return false
}

// accepts asks what the tree has not tested, cheapest first.
func (s *search) accepts(c *candidate) bool {
	if c.weighted && c.total == 0 {
		return false
	}
	for _, p := range c.tests {
		if !p.holds(s.x) {
			return false
		}
	}
	return (c.deep == nil || c.deep.match(s.view, s.view, nil)) &&
		(c.re == nil || c.re.Match(s.view)) &&
		(c.body == nil || c.body.holds(s.x, &s.content))
}
