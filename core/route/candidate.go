package route

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/moongate/moongate/core"
)

// candidate is one rule, or a group of rules that differ only in weight, at one place of a tree.
type candidate struct {
	re    *regexp.Regexp // what the tree has not tested of the path; nil: nothing
	deep  pattern        // the same; nil: nothing
	tests []predicate    // cheapest first
	body  *body          // nil: none

	members  []member
	total    uint64 // sum of the weights
	weighted bool

	// What orders and tells apart.
	path     pattern // nil for a regular expression
	sign     string
	count    int // of predicates
	method   int
	headers  int
	queries  int
	priority int
	index    int // of the first rule
}

type member struct {
	route *core.Route
	names []name  // of the path, nil when it has none
	deep  pattern // nil unless names stand behind **
	upTo  uint64  // weights up to and with this one
}

// name is a {name} and the segment that it stands for.
type name struct {
	name    string
	segment int
}

// place holds the candidates of one place of a tree in the order in which they are tried.
type place struct {
	sole  *core.Route // the first one's route when it asks for nothing more; saves the look at the list
	names []name      // what sole keeps
	list  []*candidate
}

// add puts a candidate into the place. A candidate that asks for the same becomes one group with it; clash is the index of the rule
// that makes that impossible, -1 when it is none.
func (p *place) add(c *candidate) (clash int) {
	for _, o := range p.list {
		if o.sign != c.sign || o.priority != c.priority {
			continue
		}
		if !o.weighted || !c.weighted {
			return o.index
		}
		m := c.members[0]
		o.total += m.upTo
		m.upTo = o.total
		o.members = append(o.members, m)
		return -1
	}
	own := *c // a rule with several hosts joins a group at each by itself
	own.members = slices.Clone(c.members)
	p.list = append(p.list, &own)
	return -1
}

// finish brings the place into order.
func (p *place) finish() {
	slices.SortFunc(p.list, func(a, b *candidate) int {
		return cmp.Or(a.path.compare(b.path), b.count-a.count, cmp.Compare(b.priority, a.priority), b.method-a.method,
			b.headers-a.headers, b.queries-a.queries, a.index-b.index)
	})
	for _, c := range p.list {
		c.sign = "" // served its purpose
	}
	if len(p.list) > 0 && p.list[0].simple() {
		p.sole, p.names = p.list[0].members[0].route, p.list[0].members[0].names
	}
}

// simple tells whether the candidate takes every request that comes to its place.
func (c *candidate) simple() bool {
	return c.re == nil && c.deep == nil && c.tests == nil && c.body == nil && !c.weighted
}

// pick chooses a member by its weight. Not all of them are 0.
func (c *candidate) pick(random func(uint64) uint64) *member {
	if !c.weighted {
		return &c.members[0]
	}
	n := random(c.total)
	i := 0
	for n >= c.members[i].upTo {
		i++
	}
	return &c.members[i]
}
