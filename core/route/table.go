package route

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// Table chooses the route of a request. It is immutable and safe for concurrent use.
type Table struct {
	hosts  hosts
	any    tree // rules without a host
	random func(uint64) uint64
}

// Options are what a table takes from outside. The zero value is ready.
type Options struct {
	// Random gives a number below n, which is not 0; it is called concurrently. nil: a random one.
	Random func(n uint64) uint64
	// Now is the clock of time windows; it is called concurrently. nil: time.Now.
	Now func() time.Time
}

// New builds a table. The error joins one [Error] for each fault found in the rules (errors.As finds the first, Unwrap() []error gives
// all). What the rules point to belongs to the table from here on.
func New(rules []Rule) (*Table, error) { return NewWith(rules, Options{}) }

// NewWith is New with options.
func NewWith(rules []Rule, opts Options) (*Table, error) {
	if opts.Random == nil {
		opts.Random = rand.Uint64N
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	t := &Table{random: opts.Random}
	var faults []error
	shared := shared{map[string]string{}, map[string][]name{}}
	for i := range rules {
		if err := t.add(i, rules, shared, &opts); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	t.finish()
	return t, nil
}

// add puts a rule under each of its hosts.
func (t *Table) add(index int, rules []Rule, shared shared, opts *Options) error {
	r := &rules[index]
	c, err := compile(index, r, opts)
	var names []string
	if err == nil {
		names, err = parseHosts(r.Hosts)
	}
	if err != nil {
		fault := &Error{Rule: index, Name: r.Route.Name, Want: err.Error(), Other: -1}
		if k := (*keyError)(nil); errors.As(err, &k) {
			fault.Key, fault.Want = k.key, k.want
		}
		return fault
	}
	shared.in(c)
	trees := []*tree{&t.any}
	if len(names) > 0 {
		trees = trees[:0]
		for _, name := range names {
			trees = append(trees, t.hosts.add(name))
		}
	}
	for _, tree := range trees {
		if other := tree.at(c).add(c); other >= 0 {
			return &Error{Rule: index, Name: r.Route.Name, Other: other, Want: fmt.Sprintf("takes the same requests as route %s; "+
				"change a predicate or the priority of one, or give both a weight", strconv.Quote(rules[other].Route.Name))}
		}
	}
	return nil
}

// shared are the texts and names that many rules have: kept once, they are more often in the cache.
type shared struct {
	texts map[string]string
	names map[string][]name
}

func (s shared) in(c *candidate) {
	for i := range c.path {
		c.path[i].text = once(s.texts, c.path[i].text, c.path[i].text)
	}
	if own := &c.members[0].names; *own != nil {
		*own = once(s.names, fmt.Sprint(*own), *own)
	}
}

// once is the first value that was given for a key.
func once[V any](seen map[string]V, key string, value V) V {
	if first, ok := seen[key]; ok {
		return first
	}
	seen[key] = value
	return value
}

func (t *Table) finish() {
	t.any.finish()
	for _, tree := range t.hosts.exact {
		tree.finish()
	}
	for _, tree := range t.hosts.suffix {
		tree.finish()
	}
}

// Continuer is a client that may wait for 100 Continue before it sends its body (RFC 9110 section 10.1.1): core.Client.
type Continuer interface{ Continue() error }

// Match finds the route that takes a request, nil when none does, and sets the request's Params. It looks at the request's Method, Host,
// Path (canonical), RawQuery, Header, ClientIP and, if a route with a body predicate comes into question, Body.
//
// client, which may be nil, is told to Continue once before the first byte of the body is read: a client that waits for 100 Continue gets it
// there. Its error, and one of reading the body other than that it is too large for the predicate, ends the search. A body that was
// read is still there whole for whoever reads next.
func (t *Table) Match(x *core.Exchange, client Continuer) (*core.Route, error) {
	x.Request.Params = x.Request.Params[:0]
	if isView(x.Request.Path) {
		return t.match(x, x.Request.Path, client)
	}
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	*scratch = appendView((*scratch)[:0], x.Request.Path)
	return t.match(x, *scratch, client)
}

// scratches hold views of paths that are not their own, while a search lasts.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

func (t *Table) match(x *core.Exchange, view []byte, client Continuer) (*core.Route, error) {
	s := search{x: x, view: view, random: t.random}
	s.content.client = client
	if t.hosts.exact == nil || !t.hosts.search(&s, x.Request.Host) {
		s.tree(&t.any)
	}
	return s.found, s.content.err
}
