package route_test

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/moongate/moongate/core/route"
)

// The reference is the documented order written down as plainly as possible: test every rule, sort those that take the request, and
// use the first. It knows only what the tests below generate.

type request struct {
	host, method, path, query, cookie, client string
	header                                    map[string]string
	kind, body                                string
}

// claim is a rule at one of its hosts.
type claim struct {
	rule  *route.Rule
	index int
	host  string
}

func referenceMatch(rules []route.Rule, q *request, random uint64) int {
	var claims []claim
	for i := range rules {
		hosts := rules[i].Hosts
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, h := range hosts {
			if takesHost(h, q.host) && takesPath(&rules[i], view(q.path)) && takesRest(&rules[i], q) {
				claims = append(claims, claim{&rules[i], i, h})
			}
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		return cmp.Or(
			cmp.Compare(hostRank(a.host), hostRank(b.host)),
			cmp.Compare(len(b.host), len(a.host)),
			slices.Compare(pathRank(a.rule), pathRank(b.rule)),
			cmp.Compare(otherPredicates(b.rule), otherPredicates(a.rule)),
			cmp.Compare(b.rule.Priority, a.rule.Priority),
			cmp.Compare(min(1, len(b.rule.Methods)), min(1, len(a.rule.Methods))),
			cmp.Compare(len(b.rule.Headers), len(a.rule.Headers)),
			cmp.Compare(len(b.rule.Query), len(a.rule.Query)),
		)
	})
	for len(claims) > 0 {
		group, total := claims[:1], uint64(0)
		var others []claim
		for _, c := range claims[1:] {
			if claims[0].host == c.host && sameButWeight(claims[0].rule, c.rule) {
				group = append(group[:len(group):len(group)], c)
			} else {
				others = append(others, c)
			}
		}
		if group[0].rule.Weight == nil {
			return group[0].index
		}
		for _, c := range group {
			total += uint64(*c.rule.Weight)
		}
		if total > 0 {
			n := random % total
			for _, c := range group {
				if w := uint64(*c.rule.Weight); n < w {
					return c.index
				} else {
					n -= w
				}
			}
		}
		claims = others
	}
	return -1
}

func hostRank(host string) int {
	switch {
	case host == "":
		return 2
	case strings.HasPrefix(host, "*."):
		return 1
	}
	return 0
}

func takesHost(pattern, host string) bool {
	host = strings.ToLower(host)
	if i := strings.LastIndex(host, ":"); i >= 0 {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}
	return pattern == "" || pattern == host
}

var (
	hexDigits  = regexp.MustCompile(`%..`)
	parameters = regexp.MustCompile(`;[^/]*`)
	names      = regexp.MustCompile(`\{\w+\}`)
	compiled   sync.Map // regular expressions of the generated rules
)

func searches(expression, s string) bool {
	re, ok := compiled.Load(expression)
	if !ok {
		re, _ = compiled.LoadOrStore(expression, regexp.MustCompile(expression))
	}
	return re.(*regexp.Regexp).MatchString(s)
}

func view(path string) string {
	path = parameters.ReplaceAllString(path, "")
	return hexDigits.ReplaceAllStringFunc(path, strings.ToUpper)
}

// shape is the rule's path as segments, a prefix in the spelling of a pattern.
func shape(r *route.Rule) []string {
	path := r.Path
	switch {
	case r.PathPrefix == "/" || r.Path == "" && r.PathPrefix == "":
		path = "/**"
	case strings.HasSuffix(r.PathPrefix, "/"):
		path = r.PathPrefix + "+"
	case r.PathPrefix != "":
		path = r.PathPrefix + "/**"
	}
	return strings.Split(path[1:], "/")
}

func takesPath(r *route.Rule, path string) bool {
	if r.PathRegex != "" {
		return searches(r.PathRegex, path)
	}
	return takesSegments(shape(r), strings.Split(path[1:], "/"))
}

func takesSegments(pattern, segments []string) bool {
	switch {
	case len(pattern) == 0:
		return len(segments) == 0
	case pattern[0] == "**":
		return takesSegments(pattern[1:], segments) || len(segments) > 0 && takesSegments(pattern, segments[1:])
	case len(segments) == 0:
		return false
	case pattern[0] == "+":
		return true
	case pattern[0] == "*", strings.HasPrefix(pattern[0], "{"):
		return segments[0] != "" && takesSegments(pattern[1:], segments[1:])
	}
	return pattern[0] == segments[0] && takesSegments(pattern[1:], segments[1:])
}

// pathRank is smaller for what goes first.
func pathRank(r *route.Rule) []int {
	if r.PathRegex != "" {
		return []int{3}
	}
	var rank []int
	pattern := shape(r)
	exact, open := true, false
	for i, s := range pattern {
		n := 0
		switch {
		case strings.HasPrefix(s, "{"):
			n = 1
		case s == "*":
			n = 2
		case s == "**" && i < len(pattern)-1:
			n, open = 3, true
		case s == "+":
			n, open = 5, true
		case s == "**":
			n, open = 6, true
		}
		exact = exact && n == 0
		rank = append(rank, n)
	}
	class := 1
	switch {
	case exact:
		class = 0
	case pattern[0] == "**":
		class = 4
	case open:
		class = 2
	}
	return append(append([]int{class}, rank...), 4)
}

func otherPredicates(r *route.Rule) int {
	n := len(r.Headers) + len(r.Query) + len(r.Cookies) + len(r.Body)
	for _, has := range []bool{r.Methods != nil, r.Clients != nil} {
		if has {
			n++
		}
	}
	return n
}

func takesRest(r *route.Rule, q *request) bool {
	if r.Methods != nil && !slices.Contains(r.Methods, q.method) {
		return false
	}
	if r.Clients != nil && !slices.ContainsFunc(r.Clients, func(s string) bool {
		return netip.MustParsePrefix(s).Contains(netip.MustParseAddr(q.client))
	}) {
		return false
	}
	for _, c := range r.Headers {
		v, ok := q.header[c.Key]
		if !takesValue(c, v, ok) {
			return false
		}
	}
	for _, c := range r.Query {
		values, _ := url.ParseQuery(q.query)
		if !takesValue(c, values.Get(c.Key), values.Has(c.Key)) {
			return false
		}
	}
	for _, c := range r.Cookies {
		v, ok := strings.CutPrefix(q.cookie, c.Key+"=")
		if !takesValue(c, v, ok) {
			return false
		}
	}
	for _, c := range r.Body {
		var m map[string]string
		if q.kind != "application/json" || int64(len(q.body)) > r.Route.BodyBuffer || json.Unmarshal([]byte(q.body), &m) != nil {
			return false
		}
		v, ok := m[c.Key]
		if !takesValue(c, v, ok) {
			return false
		}
	}
	return true
}

func takesValue(c route.Condition, v string, ok bool) bool {
	switch {
	case c.Exists != nil:
		return ok == *c.Exists
	case c.OneOf != nil:
		return ok && slices.Contains(c.OneOf, v)
	}
	return ok && searches(c.Matches, v)
}

func sameButWeight(a, b *route.Rule) bool { return spell(a) == spell(b) }

// spell writes down what a rule asks for, without its hosts and weight.
func spell(r *route.Rule) string {
	s := *r
	s.Route, s.Hosts, s.Weight = nil, nil, nil
	if s.PathRegex == "" {
		s.Path, s.PathPrefix = "/"+strings.Join(shape(r), "/"), ""
	}
	s.Path = names.ReplaceAllString(s.Path, "{}")
	for _, list := range []*[]route.Condition{&s.Headers, &s.Query, &s.Cookies, &s.Body} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].OneOf = slices.Sorted(slices.Values((*list)[i].OneOf))
		}
	}
	s.Methods = slices.Sorted(slices.Values(s.Methods))
	out, _ := json.Marshal(s)
	return string(out)
}
