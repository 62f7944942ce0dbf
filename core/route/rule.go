package route

import "github.com/moongate/moongate/core"

// Rule is a route as it was configured: where requests go, and which predicates must all hold for it to take one. The zero
// value of each predicate asks for nothing.
type Rule struct {
	// Route is what Match returns. Its Name is used in errors; it is not nil.
	Route *core.Route

	Hosts []string // names without port, or "*.suffix" of any depth; any of them

	// At most one of the three is set. None, the path "/**" and the prefix "/" are every path, the "*" of OPTIONS included.
	Path       string // exact, or with segments * (one), {name} (one, kept in Params) and ** (any number, also none)
	PathPrefix string // whole segments
	PathRegex  string // RE2; searches the path without ;parameters, anchored only by ^ and $

	Methods   []string    // any of them; case counts (RFC 9110 section 9.1)
	Listeners []string    // names of listeners; any of them
	Clients   []string    // CIDRs or addresses; any of them
	Headers   []Condition // several lines of one name are tested as one value, joined by ", "
	Query     []Condition // the first value of a name counts
	Cookies   []Condition // the first value of a name counts
	Body      []Condition // keys are gjson paths into a JSON body
	Time      Window

	Weight   *int // share within the group of routes that differ only in it; 0 takes nothing; nil: no group
	Priority int
}

// Condition is a test of one named value. Exactly one of OneOf, Matches and Exists is set.
type Condition struct {
	Key     string
	OneOf   []string // the value is one of these, byte for byte
	Matches string   // RE2, found anywhere in the value unless anchored
	Exists  *bool    // whether there is such a value, an empty one included
}

// Window is a span of time. All of its parts must hold; empty parts do.
type Window struct {
	After  string // RFC 3339, included
	Before string // RFC 3339, not included
	Daily  string // "08:00-18:00": from the first minute to before the last; "22:00-06:00" spans midnight
	Zone   string // IANA name of the zone for Daily, "" is UTC
}

func (w Window) empty() bool { return w == Window{} }

// PrefixSegments is the number of leading segments that `strip_prefix = true` takes: all of a prefix, or those before the first
// ** of a pattern. ok is false where the rule's path has no such part.
func (r *Rule) PrefixSegments() (n int, ok bool) {
	switch {
	case r.PathPrefix != "":
		p, err := parsePrefix(r.PathPrefix)
		return p.lead(), err == nil
	case r.Path != "":
		p, err := parsePattern(r.Path)
		return p.lead(), err == nil && p.open()
	}
	return 0, r.PathRegex == ""
}

// predicates counts what the third step of the order counts.
func (r *Rule) predicates() int {
	n := len(r.Headers) + len(r.Query) + len(r.Cookies) + len(r.Body)
	if len(r.Methods) > 0 {
		n++
	}
	if len(r.Listeners) > 0 {
		n++
	}
	if len(r.Clients) > 0 {
		n++
	}
	if !r.Time.empty() {
		n++
	}
	return n
}
