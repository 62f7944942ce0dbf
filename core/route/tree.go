package route

import "slices"

// tree holds the rules of one host by their paths.
type tree struct {
	root    node
	regexps place
}

// node is where the paths stand that begin with the same segments.
type node struct {
	text     string // the literal that leads here
	literals children
	named    *node
	single   *node

	exacts bool // here or further down are exact paths
	fixed  bool // here or further down are patterns of a fixed number of segments, not all literal
	open   bool // and such of any number

	exact place // paths that end here, all literal
	rest  place // ** at the end
	below place // prefixes that end with a slash
	end   place // patterns of as many segments
	deep  place // ** with something behind it
}

// at finds the place for a candidate, making the way to it.
func (t *tree) at(c *candidate) *place {
	p := c.path
	if c.re != nil {
		return &t.regexps
	}
	n, lead, exact := &t.root, p.lead(), p.exact()
	for i := 0; ; i++ {
		n.exacts = n.exacts || exact
		n.fixed = n.fixed || lead == len(p) && !exact
		n.open = n.open || lead < len(p)
		if i == lead {
			break
		}
		n = n.child(&p[i])
	}
	switch {
	case exact:
		return &n.exact
	case lead == len(p):
		return &n.end
	case p[lead].part == below:
		return &n.below
	case lead < len(p)-1:
		return &n.deep
	}
	return &n.rest
}

// child is the node behind an element, made if there is none.
func (n *node) child(e *element) *node {
	at := &n.named
	switch e.part {
	case literal:
		return n.literals.make(e.text)
	case single:
		at = &n.single
	}
	if *at == nil {
		*at = &node{}
	}
	return *at
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
	for _, p := range []*place{&n.exact, &n.rest, &n.below, &n.end, &n.deep} {
		p.finish()
	}
	for _, s := range n.literals.slots {
		s.node.finish()
	}
	n.named.finish()
	n.single.finish()
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

// find returns nil when there is no such child. hash is the segment's.
func (c *children) find(hash uint32, segment []byte) *node {
	if len(c.slots) == 0 {
		return nil
	}
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

// make finds the child of that literal, adding it if there is none.
func (c *children) make(text string) *node {
	_, hash := nextSegment([]byte(text), 0)
	if n := c.find(hash, []byte(text)); n != nil {
		return n
	}
	n := &node{text: text}
	if c.count++; 2*c.count > len(c.slots) {
		old := slices.Clone(c.slots)
		c.slots = make([]slot, max(4, 2*len(old)))
		for _, s := range old {
			if s.node != nil {
				c.put(s)
			}
		}
	}
	c.put(slot{hash, n})
	return n
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
