package route

import (
	"slices"
	"strings"

	"github.com/moongate/moongate/core"
)

// predicate is a claim about a request besides its host and path. It is immutable.
type predicate interface {
	holds(x *core.Exchange) bool
	cost() int // cheaper ones are asked first
}

// What predicates cost, roughly in nanoseconds.
const (
	costMethod   = 1
	costListener = 2
	costClient   = 10
	costHeader   = 20
	costQuery    = 30
	costCookie   = 40
	costTime     = 60
	costRegexp   = 200
)

// newPredicates compiles a rule's predicates, cheapest first, without its body's. The second result is spelled alike for rules that
// ask for the same, body included.
func newPredicates(r *Rule, opts *Options) (list []predicate, sign string, err error) {
	var signs []string
	add := func(p predicate, sign string, fault error) {
		if fault != nil && err == nil {
			err = fault
		}
		list, signs = append(list, p), append(signs, sign)
	}
	if len(r.Methods) > 0 {
		p, fault := newMethod(r.Methods)
		add(p, "method="+signSet(r.Methods), fault)
	}
	if len(r.Listeners) > 0 {
		add(listener(r.Listeners), "listener="+signSet(r.Listeners), nil)
	}
	if len(r.Clients) > 0 {
		p, fault := newClient(r.Clients)
		add(p, "client="+p.sign(), fault)
	}
	if !r.Time.empty() {
		p, fault := newWindow(r.Time, opts.Now)
		add(p, "time="+p.sign(), fault)
	}
	for i := range r.Headers {
		p, fault := newHeader(&r.Headers[i])
		add(p, r.Headers[i].sign("header."+strings.ToLower(r.Headers[i].Key)), fault)
	}
	for i := range r.Query {
		p, fault := newQuery(&r.Query[i])
		add(p, r.Query[i].sign("query."+r.Query[i].Key), fault)
	}
	for i := range r.Cookies {
		p, fault := newCookie(&r.Cookies[i])
		add(p, r.Cookies[i].sign("cookie."+r.Cookies[i].Key), fault)
	}
	for i := range r.Body {
		signs = append(signs, r.Body[i].sign("body."+r.Body[i].Key))
	}
	slices.SortStableFunc(list, func(a, b predicate) int { return a.cost() - b.cost() })
	slices.Sort(signs)
	return list, strings.Join(signs, "\n"), err
}
