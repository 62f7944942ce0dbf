package route

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/moongate/moongate/core"
)

// Table chooses the route of a request. It is immutable and safe for concurrent use.
type Table struct {
	rules []compiled
	opts  Options
}

// Options are what a table takes from outside. The zero value is ready.
type Options struct {
	// Random gives a number below n; it is called concurrently. nil: a random one.
	Random func(n uint64) uint64
	// Now is the clock of time windows; it is called concurrently. nil: time.Now.
	Now func() time.Time
}

type compiled struct {
	rule *Rule
	path pattern
}

// New builds a table. The error joins one [Error] for each fault found in the rules (errors.As finds the first, Unwrap() []error gives
// all). The rules and what they point to are not changed afterwards.
func New(rules []Rule) (*Table, error) { return NewWith(rules, Options{}) }

// NewWith is New with options.
func NewWith(rules []Rule, opts Options) (*Table, error) {
	if opts.Random == nil {
		opts.Random = rand.Uint64N
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	t := &Table{opts: opts}
	var faults []error
	for i := range rules {
		r := &rules[i]
		p := every()
		var err error
		switch {
		case r.Path != "":
			p, err = parsePattern(r.Path)
		case r.PathPrefix != "":
			p, err = parsePrefix(r.PathPrefix)
		}
		var k *keyError
		if errors.As(err, &k) {
			faults = append(faults, &Error{Rule: i, Name: r.Route.Name, Key: k.key, Want: k.want, Other: -1})
			continue
		}
		t.rules = append(t.rules, compiled{r, p})
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return t, nil
}

// Match finds the route that takes a request, nil when none does, and sets the request's Params. It looks at the request's Method, Host,
// Path (canonical), RawQuery, Header, ClientIP and, if a route with a body predicate comes into question, Body.
//
// needBody, which may be nil, is called once before the first byte of the body is read: a client that waits for 100 Continue gets it
// there. Its error, and one of reading the body other than that it is too large for the predicate, ends the search. A body that was
// read is still there whole for whoever reads next.
func (t *Table) Match(x *core.Exchange, needBody func() error) (*core.Route, error) {
	x.Request.Params = x.Request.Params[:0]
	for _, c := range t.rules {
		if c.path.String() == string(x.Request.Path) || c.path.open() {
			return c.rule.Route, nil
		}
	}
	return nil, nil
}
