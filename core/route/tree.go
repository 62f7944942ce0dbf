package route

import "github.com/moongate/moongate/core"

// tree holds the rules of one host by their paths.
type tree struct {
	root    node
	regexps place
}

// node is where the paths stand that begin with the same segments. It fills two lines of the cache, the first with what the way down
// needs: among many routes it is the misses that cost (BenchmarkMatch).
type node struct {
	text   string    // the literal that leads here
	only   *node     // the literal child when there is one
	table  *children // the literal children when there are more
	named  *node
	single *node
	end    *core.Route // takes every path that ends here, so that more.end does not matter; nil: it does
	rest   *core.Route // as end, for more.rest, with no names to keep

	exact bool    // here or further down are paths that are all literal
	fixed bool    // and patterns of a fixed number of segments
	open  bool    // and such of any number
	names []name  // what end keeps
	more  *places // nil when there is nothing in it that matters
	_     [24]byte
}

// places are what ends or branches off at a node.
type places struct {
	end   place // paths and patterns of as many segments
	deep  place // ** with something behind it
	below place // prefixes that end with a slash
	rest  place // ** at the end
}

// at finds the place for a candidate, making the way to it.
func (t *tree) at(c *candidate) *place {
	p := c.path
	if c.re != nil {
		return &t.regexps
	}
	n, lead, exact := &t.root, p.lead(), p.exact()
	for i := 0; ; i++ {
		n.exact = n.exact || exact
		n.fixed = n.fixed || lead == len(p) && !exact
		n.open = n.open || lead < len(p)
		if i == lead {
			break
		}
		n = n.behind(&p[i])
	}
	if n.more == nil {
		n.more = &places{}
	}
	switch {
	case lead == len(p):
		return &n.more.end
	case p[lead].part == below:
		return &n.more.below
	case lead < len(p)-1:
		return &n.more.deep
	}
	return &n.more.rest
}

// behind is the node behind an element, made if there is none.
func (n *node) behind(e *element) *node {
	if e.part == literal {
		return n.makeLiteral(e.text)
	}
	at := &n.named
	if e.part == single {
		at = &n.single
	}
	if *at == nil {
		*at = &node{}
	}
	return *at
}

func (n *node) makeLiteral(text string) *node {
	segment := []byte(text)
	_, hash := nextSegment(segment, 0)
	if child := n.literal(hash, segment); child != nil {
		return child
	}
	child := &node{text: text}
	switch {
	case n.only == nil && n.table == nil:
		n.only = child
	case n.table == nil:
		n.table = &children{}
		_, other := nextSegment([]byte(n.only.text), 0)
		n.table.add(other, n.only)
		n.only = nil
		fallthrough
	default:
		n.table.add(hash, child)
	}
	return child
}

// literal is the node behind a literal, nil when there is none. hash is the segment's.
func (n *node) literal(hash uint32, segment []byte) *node {
	if n.only != nil {
		if n.only.text == string(segment) {
			return n.only
		}
		return nil
	}
	if n.table == nil {
		return nil
	}
	return n.table.find(hash, segment)
}

// finish brings all places into order, when the tree is complete.
func (t *tree) finish() {
	t.regexps.finish()
	t.root.finish()
}

func (n *node) finish() {
	if n == nil {
		return
	}
	n.only.finish()
	if n.table != nil {
		for _, s := range n.table.slots {
			s.node.finish()
		}
	}
	n.named.finish()
	n.single.finish()
	m := n.more
	if m == nil {
		return
	}
	for _, p := range []*place{&m.end, &m.deep, &m.below, &m.rest} {
		p.finish()
	}
	n.end, n.names = m.end.sole, m.end.names
	if m.rest.names == nil {
		n.rest = m.rest.sole
	}
	if len(m.deep.list)+len(m.below.list) == 0 && (n.end != nil || len(m.end.list) == 0) && (n.rest != nil || len(m.rest.list) == 0) {
		n.more = nil
	}
}

// children is a hash table of nodes by their literals, with open addressing and at least half of its slots empty. It beats a map
// because the hash is a by-product of finding the segment's end (BenchmarkMatch).
type children struct {
	slots []slot
	count int
}

type slot struct {
	hash uint32
	node *node
}

// find returns nil when there is no such child.
func (c *children) find(hash uint32, segment []byte) *node {
	mask := uint32(len(c.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &c.slots[i]
		if s.node == nil {
			return nil
		}
		if s.hash == hash && s.node.text == string(segment) {
			return s.node
		}
	}
}

// add takes a child that is not there yet.
func (c *children) add(hash uint32, n *node) {
	if c.count++; 2*c.count > len(c.slots) {
		old := c.slots
		c.slots = make([]slot, max(4, 2*len(old)))
		for _, s := range old {
			if s.node != nil {
				c.put(s)
			}
		}
	}
	c.put(slot{hash, n})
}

func (c *children) put(s slot) {
	mask := uint32(len(c.slots) - 1)
	i := s.hash & mask
	for c.slots[i].node != nil {
		i = (i + 1) & mask
	}
	c.slots[i] = s
}

// nextSegment finds the end of the segment that starts at an offset, and its hash. Keys come from the configuration alone, so that the
// hash need not withstand an attacker: a request can make no more than one probe sequence of it.
func nextSegment(path []byte, at int) (end int, hash uint32) {
	h := uint64(0)
	for ; at < len(path) && path[at] != '/'; at++ {
		h = (h<<7 | h>>57) ^ uint64(path[at])
	}
	return at, uint32(h * 0x9e3779b97f4a7c15 >> 32)
}
