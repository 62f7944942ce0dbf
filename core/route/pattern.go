package route

import (
	"strings"

	"github.com/moongate/moongate/core"
)

// part is what one segment of a pattern asks for. Their order is the order of the path: a literal goes before the others.
type part uint8

const (
	literal part = iota
	named        // {name}: one segment that is not empty
	single       // *: the same, but nobody wants to know
	below        // the end of a prefix that ends with a slash: at least one segment, perhaps empty
	rest         // **: any number of segments, also none
)

type element struct {
	part part
	text string // the literal in the matcher's view, or the name
}

// pattern is a parsed path of a rule, without regular expressions.
type pattern []element

// every is the pattern of a rule without a path.
func every() pattern { return pattern{{part: rest}} }

// parsePattern reads the `path` of a rule.
func parsePattern(path string) (pattern, error) {
	segments, err := splitRule("path", path)
	if err != nil {
		return nil, err
	}
	p := make(pattern, 0, len(segments))
	for _, s := range segments {
		e, err := parseElement(s)
		if err != nil {
			return nil, err
		}
		if e.part == named && p.names(e.text) {
			return nil, wrong("path", "{%s} stands twice", e.text)
		}
		if e.part == rest && len(p) > 0 && p[len(p)-1].part == rest {
			return nil, wrong("path", "** beside ** means no more than one")
		}
		p = append(p, e)
	}
	return p, nil
}

// parsePrefix reads the `path_prefix` of a rule.
func parsePrefix(prefix string) (pattern, error) {
	segments, err := splitRule("path_prefix", prefix)
	if err != nil {
		return nil, err
	}
	var p pattern
	for _, s := range segments {
		if strings.ContainsAny(s, "*{}") {
			return nil, wrong("path_prefix", "%q is no literal segment; use path for patterns", s)
		}
		p = append(p, element{literal, normal(s)})
	}
	if n := len(p) - 1; p[n].text != "" {
		return append(p, element{part: rest}), nil
	} else if n == 0 {
		return every(), nil
	} else {
		p[n] = element{part: below}
	}
	return p, nil
}

func parseElement(s string) (element, error) {
	switch {
	case s == "**":
		return element{part: rest}, nil
	case s == "*":
		return element{part: single}, nil
	case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}"):
		if name := s[1 : len(s)-1]; isName(name) {
			return element{named, name}, nil
		}
		return element{}, wrong("path", "%s is no name: letters, digits and _, a letter first", s)
	case strings.ContainsAny(s, "*{}"):
		return element{}, wrong("path", "%q: *, ** and {name} stand for whole segments; %%2A is a literal star", s)
	}
	return element{literal, normal(s)}, nil
}

// splitRule checks a rule's path and gives its segments.
func splitRule(key, path string) ([]string, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, wrong(key, "%q does not start with a slash", path)
	}
	if strings.Contains(path, ";") {
		return nil, wrong(key, "%q: segments are matched without their ;parameters, so this never matches", path)
	}
	p, err := Canonical(core.Bytes(strings.ReplaceAll(path, " ", "%20")), nil)
	if err == nil {
		_, err = p.Under(core.PathStrict)
	}
	if err != nil {
		return nil, wrong(key, "%q: %s", path, err.(*core.Error).Public)
	}
	return strings.Split(string(p.Seen[1:]), "/"), nil
}

// normal is the matcher's view of a literal.
func normal(segment string) string { return string(appendView(nil, core.Bytes(segment))) }

func isName(s string) bool {
	for i, c := range []byte(s) {
		digit := '0' <= c && c <= '9'
		if c != '_' && !('a' <= c|0x20 && c|0x20 <= 'z') && !(digit && i > 0) {
			return false
		}
	}
	return s != ""
}

// exact tells whether all of the pattern is literal.
func (p pattern) exact() bool {
	for _, e := range p {
		if e.part != literal {
			return false
		}
	}
	return true
}

// open tells whether the pattern matches paths of different lengths.
func (p pattern) open() bool { return p.lead() < len(p) }

// lead is the number of segments before the first part that stands for any number of them.
func (p pattern) lead() int {
	for i, e := range p {
		if e.part >= below {
			return i
		}
	}
	return len(p)
}

func (p pattern) names(name string) bool {
	for _, e := range p {
		if e.part == named && e.text == name {
			return true
		}
	}
	return false
}

// String spells the pattern with all names alike: patterns of one spelling match the same paths.
func (p pattern) String() string {
	var b strings.Builder
	for _, e := range p {
		b.WriteByte('/')
		b.WriteString([...]string{e.text, "{}", "*", "+", "**"}[e.part])
	}
	return b.String()
}

// compare orders open patterns as the documentation of the package says: below 0 when p goes first. It looks at the parts only.
func (p pattern) compare(o pattern) int {
	for i := 0; i < len(p) || i < len(o); i++ {
		if d := p.rank(i) - o.rank(i); d != 0 {
			return d
		}
	}
	return 0
}

// rank is the place of a part among those that could stand there.
func (p pattern) rank(i int) int {
	switch {
	case i >= len(p):
		return 4
	case p[i].part < below:
		return int(p[i].part)
	case p[i].part == below:
		return 5
	case i < len(p)-1:
		return 3
	}
	return 6
}
