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
	names pattern // nil when the path has no names
	upTo  uint64  // weights up to and with this one
}

// list holds the candidates of one place in the order in which they are tried.
type list []*candidate

// add puts a candidate into the list. A candidate that asks for the same becomes one group with it; clash is the index of the rule
// that makes that impossible, -1 when it is none.
func (l *list) add(c *candidate) (clash int) {
	for _, o := range *l {
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
	*l = append(*l, &own)
	return -1
}

// sort brings the list into order.
func (l list) sort() {
	slices.SortFunc(l, func(a, b *candidate) int {
		return cmp.Or(a.path.compare(b.path), b.count-a.count, cmp.Compare(b.priority, a.priority), b.method-a.method,
			b.headers-a.headers, b.queries-a.queries, a.index-b.index)
	})
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
