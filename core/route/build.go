package route

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moongate/moongate/core"
)

// maxWeight keeps sums of weights far from overflow.
const maxWeight = 1_000_000

// compile makes a candidate of a rule, without its hosts.
func compile(index int, r *Rule, opts *Options) (*candidate, error) {
	c := &candidate{index: index, priority: r.Priority, count: r.predicates(), headers: len(r.Headers), queries: len(r.Query),
		method: min(len(r.Methods), 1)}
	path, err := c.compilePath(r)
	if err != nil {
		return nil, err
	}
	var sign string
	if c.tests, sign, err = newPredicates(r, opts); err != nil {
		return nil, err
	}
	if c.body, err = newBody(r.Body, r.Route.BodyBuffer); err != nil {
		return nil, err
	}
	c.sign = path + "\n" + sign
	m := member{route: r.Route}
	for i, e := range c.path {
		if e.part == named {
			m.names = append(m.names, name{e.text, i})
		}
	}
	if c.deep != nil && m.names != nil {
		m.deep = c.deep
	}
	if r.Weight != nil {
		if *r.Weight < 0 || *r.Weight > maxWeight {
			return nil, wrong("weight", "%d: from 0 to %d", *r.Weight, maxWeight)
		}
		c.weighted, c.total, m.upTo = true, uint64(*r.Weight), uint64(*r.Weight)
	}
	c.members = []member{m}
	return c, checkTarget(r.Route)
}

// compilePath sets what the candidate has to test of the path, and spells the path so that equal ones are alike.
func (c *candidate) compilePath(r *Rule) (string, error) {
	set := 0
	for _, s := range []string{r.Path, r.PathPrefix, r.PathRegex} {
		if s != "" {
			set++
		}
	}
	var err error
	switch {
	case set > 1:
		return "", wrong("path", "only one of path, path_prefix and path_regex")
	case r.PathRegex != "":
		if c.re, err = regexp.Compile(r.PathRegex); err != nil {
			return "", wrong("path_regex", "%v", err)
		}
		return "~" + r.PathRegex, nil
	case r.Path != "":
		c.path, err = parsePattern(r.Path)
	case r.PathPrefix != "":
		c.path, err = parsePrefix(r.PathPrefix)
	default:
		c.path = every()
	}
	if lead := c.path.lead(); lead < len(c.path)-1 {
		c.deep = c.path
	}
	return c.path.String(), err
}

// parseHosts brings a rule's hosts into the form of the trees, each once.
func parseHosts(list []string) ([]string, error) {
	var out []string
	for _, s := range list {
		host, err := parseHost(s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out, nil
}

// checkTarget checks what Target will do for the route.
func checkTarget(rt *core.Route) error {
	if rt.StripSegments < 0 {
		return wrong("strip_prefix", "%d segments cannot be taken away", rt.StripSegments)
	}
	if rt.StripPrefix != "" {
		if rt.StripSegments > 0 {
			return wrong("strip_prefix", "either a prefix or a number of segments")
		}
		if _, err := splitRule("strip_prefix", rt.StripPrefix); err != nil {
			return err
		}
	}
	if rt.Rewrite == nil {
		return nil
	}
	for _, c := range []byte(rt.RewriteTo) {
		if pathClass[c]&classNever != 0 {
			return wrong("rewrite.to", "%q: a path has no %q", rt.RewriteTo, c)
		}
	}
	return checkTemplate(rt.Rewrite, rt.RewriteTo)
}

var reference = regexp.MustCompile(`\$(?:\$|\{\w+\}|\w+)?`)

// checkTemplate finds references to groups that the pattern does not have: Expand would make nothing of them.
func checkTemplate(re *regexp.Regexp, to string) error {
	for _, ref := range reference.FindAllString(to, -1) {
		name := strings.Trim(ref[1:], "{}")
		if name == "$" {
			continue
		}
		n, err := strconv.Atoi(name)
		if err == nil && n <= re.NumSubexp() || err != nil && name != "" && re.SubexpIndex(name) >= 0 {
			continue
		}
		return wrong("rewrite.to", "%q: the pattern has no group %s; write ${1} where letters follow, $$ for a dollar sign", to, ref)
	}
	return nil
}
