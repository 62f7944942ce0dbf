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

// maxChain is how many literal segments deep the short way goes.
const maxChain = 8

// tree looks through one host's rules in the order of their paths.
func (s *search) tree(t *tree) bool {
	if len(s.view) == 0 || s.view[0] != '/' {
		return s.take(&t.regexps) || s.takeRest(&t.root)
	}
	return s.paths(&t.root) || s.take(&t.regexps) || s.own(&t.root, false)
}

// paths looks for exact paths, patterns and prefixes. It goes down the literals once; down to where another way branches off, the
// prefixes are those that it passed.
func (s *search) paths(root *node) bool {
	var chain [maxChain]*node // the nodes before the first branch, root left out
	var branch *node
	n, at, depth, branchAt := root, 1, 0, 0
	for {
		if branch == nil {
			if n.named != nil || n.single != nil || depth == maxChain {
				branch, branchAt = n, at
			} else {
				chain[depth] = n
				depth++
			}
		}
		if at > len(s.view) || branch != nil && !n.exact {
			break
		}
		end, hash := nextSegment(s.view, at)
		child := n.literal(hash, s.view[at:end])
		if child == nil {
			break
		}
		n, at = child, end+1
	}
	more := at <= len(s.view)
	if !more && s.takeEnd(n) {
		return true
	}
	if branch != nil {
		if branch.fixed && s.fixed(branch, branchAt) || branch.open && s.branch(branch, branchAt, branch == root) {
			return true
		}
		more = true
	}
	for depth--; depth > 0; depth-- {
		if n := chain[depth]; n.open && s.own(n, more) {
			return true
		}
		more = true
	}
	return false
}

// branch is open, but leaves what the root itself takes for later.
func (s *search) branch(n *node, at int, root bool) bool {
	if root {
		return s.under(n, at)
	}
	return s.open(n, at)
}

// fixed looks for a pattern of as many segments as the path has. at is where the next one starts, behind the path when there is none.
func (s *search) fixed(n *node, at int) bool {
	if at > len(s.view) {
		return s.takeEnd(n)
	}
	end, hash := nextSegment(s.view, at)
	if c := n.literal(hash, s.view[at:end]); c != nil && c.fixed && s.fixed(c, end+1) {
		return true
	}
	if end == at {
		return false
	}
	return n.named != nil && n.named.fixed && s.fixed(n.named, end+1) ||
		n.single != nil && n.single.fixed && s.fixed(n.single, end+1)
}

// open looks for a pattern that ends with any number of segments, the one that keeps longest to single segments first.
func (s *search) open(n *node, at int) bool {
	more := at <= len(s.view)
	return more && s.under(n, at) || s.own(n, more)
}

// under looks for the open patterns that go on behind a node.
func (s *search) under(n *node, at int) bool {
	end, hash := nextSegment(s.view, at)
	if c := n.literal(hash, s.view[at:end]); c != nil && c.open && s.open(c, end+1) {
		return true
	}
	if end == at {
		return false
	}
	return n.named != nil && n.named.open && s.open(n.named, end+1) ||
		n.single != nil && n.single.open && s.open(n.single, end+1)
}

// own looks for the open patterns that branch off at a node; more says that the path has further segments.
func (s *search) own(n *node, more bool) bool {
	if m := n.more; m != nil && (s.take(&m.deep) || more && s.take(&m.below)) {
		return true
	}
	return s.takeRest(n)
}

func (s *search) takeRest(n *node) bool {
	if n.rest != nil {
		s.found = n.rest
		return true
	}
	return n.more != nil && s.take(&n.more.rest)
}

func (s *search) takeEnd(n *node) bool {
	if n.end != nil {
		s.found = n.end
		s.keep(n.names)
		return true
	}
	return n.more != nil && s.take(&n.more.end)
}

// take gives the request to the first candidate of a place that accepts it.
func (s *search) take(p *place) bool {
	if p.sole != nil {
		s.found = p.sole
		s.keep(p.names)
		return true
	}
	return len(p.list) > 0 && s.takeFirst(p.list)
}

func (s *search) takeFirst(list []*candidate) bool {
	for _, c := range list {
		if s.accepts(c) {
			m := c.pick(s.random)
			s.found = m.route
			if c.deep == nil {
				s.keep(m.names)
			} else if m.names != nil {
				m.deep.match(s.view, s.x.Request.Path, &s.x.Request.Params)
			}
			return true
		}
		if s.content.err != nil {
			return true
		}
	}
	return false
}

// keep sets the request's Params.
func (s *search) keep(names []name) {
	if len(names) == 0 {
		return
	}
	r := &s.x.Request
	at, segment := 1, 0
	for i := range names {
		for ; segment < names[i].segment; at++ {
			if r.Path[at] == '/' {
				segment++
			}
		}
		end := at
		for end < len(r.Path) && r.Path[end] != '/' && r.Path[end] != ';' {
			end++
		}
		r.Params = append(r.Params, core.Param{Name: names[i].name, Value: r.Path[at:end]})
	}
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
