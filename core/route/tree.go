package route

// tree holds the rules of one host by their paths.
type tree struct {
	exact   map[string]*list // by the whole path
	root    node             // patterns
	regexps list
}

// node is where the patterns stand that begin with the same segments.
type node struct {
	literals map[string]*node
	named    *node
	single   *node

	end   list // patterns of as many segments
	deep  list // ** with something behind it
	below list // prefixes that end with a slash
	rest  list // ** at the end

	fixed bool // here or further down are patterns of a fixed number of segments
	open  bool // and such of any number
}

// place finds the list for a candidate, making the way to it.
func (t *tree) place(c *candidate) *list {
	p := c.path
	switch {
	case c.re != nil:
		return &t.regexps
	case p.exact():
		return t.placeExact(p.String())
	}
	n, lead := &t.root, p.lead()
	for i := 0; ; i++ {
		n.fixed = n.fixed || lead == len(p)
		n.open = n.open || lead < len(p)
		if i == lead {
			break
		}
		n = n.child(&p[i])
	}
	switch {
	case lead == len(p):
		return &n.end
	case p[lead].part == below:
		return &n.below
	case lead < len(p)-1:
		return &n.deep
	}
	return &n.rest
}

func (t *tree) placeExact(path string) *list {
	if t.exact == nil {
		t.exact = map[string]*list{}
	}
	if t.exact[path] == nil {
		t.exact[path] = new(list)
	}
	return t.exact[path]
}

// child is the node behind an element, made if there is none.
func (n *node) child(e *element) *node {
	at := &n.named
	switch e.part {
	case literal:
		if n.literals == nil {
			n.literals = map[string]*node{}
		}
		if n.literals[e.text] == nil {
			n.literals[e.text] = &node{}
		}
		return n.literals[e.text]
	case single:
		at = &n.single
	}
	if *at == nil {
		*at = &node{}
	}
	return *at
}

// sort brings all lists into order, when the tree is complete.
func (t *tree) sort() {
	for _, l := range t.exact {
		l.sort()
	}
	t.regexps.sort()
	t.root.sort()
}

func (n *node) sort() {
	if n == nil {
		return
	}
	for _, l := range []list{n.end, n.deep, n.below, n.rest} {
		l.sort()
	}
	for _, child := range n.literals {
		child.sort()
	}
	n.named.sort()
	n.single.sort()
}
