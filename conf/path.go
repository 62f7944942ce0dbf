package conf

import (
	"fmt"
	"regexp"
	"strings"
)

// PathKind is how Path.Text is meant.
type PathKind int

// The kinds of path predicates.
const (
	PathAny      PathKind = iota // every path; Text is empty
	PathSegments                 // literal segments, * for one, {name} for one, ** for any number and none
	PathPrefix                   // whole segments from the front
	PathRegex                    // Go's regexp (RE2)
)

// Path is a route's path predicate.
type Path struct {
	Pos  Pos
	Kind PathKind
	Text string
}

// String gives the key and the text as they are written; empty for every path.
func (p Path) String() string {
	switch p.Kind {
	case PathSegments:
		return "path " + p.Text
	case PathPrefix:
		return "path_prefix " + p.Text
	case PathRegex:
		return "path_regex " + p.Text
	}
	return ""
}

// path is one of the three keys that say which paths a route takes.
func path(key string, kind PathKind, checks ...check) field[Route] {
	return field[Route]{key: key, bind: func(b *binder, key string, v Value, r *Route) {
		if s, ok := b.text(key, v, checks...); ok {
			r.Path = Path{Pos: v.Pos, Kind: kind, Text: s}
		}
	}}
}

// isWildcard tells whether a segment of a pattern takes more than itself.
func isWildcard(segment string) bool {
	return segment == "*" || segment == "**" || strings.HasPrefix(segment, "{")
}

// pathPattern checks a pattern of segments.
func pathPattern(text string) string {
	if wrong := pathText(text); wrong != "" {
		return wrong
	}
	names := map[string]bool{}
	for _, segment := range strings.Split(text[1:], "/") {
		name, isName := strings.CutPrefix(segment, "{")
		name, closed := strings.CutSuffix(name, "}")
		switch {
		case segment == "*" || segment == "**":
		case isName && (!closed || variableName(name) != ""):
			return fmt.Sprintf("%q is no parameter: write {name}, the whole segment", segment)
		case isName && names[name]:
			return fmt.Sprintf("the parameter {%s} stands twice", name)
		case isName:
			names[name] = true
		case strings.ContainsAny(segment, "*{}"):
			return fmt.Sprintf("in %q a * or {name} is a part of a segment: it is a whole one, or write path_regex", segment)
		}
	}
	return ""
}

// pathPrefix checks a prefix of whole segments.
func pathPrefix(text string) string {
	if strings.ContainsAny(text, "*{}") {
		return fmt.Sprintf(`%q has a wildcard, and a prefix has none: write path = "/api/**" for patterns`, shorten(text))
	}
	return pathText(text)
}

// pathText checks what holds for patterns and prefixes alike: they are compared with paths as they come over the wire.
func pathText(text string) string {
	switch {
	case !strings.HasPrefix(text, "/"):
		return fmt.Sprintf("%q does not begin with a slash: write %q", shorten(text), "/"+shorten(text))
	case strings.ContainsAny(text, "?#"):
		return fmt.Sprintf("%q has a query or fragment, which a path never has: use the query predicate", shorten(text))
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return fmt.Sprintf("%q has control characters, which no request's path has", shorten(text))
		}
	}
	segments := strings.Split(text[1:], "/")
	for i, segment := range segments {
		if segment == "." || segment == ".." || segment == "" && i < len(segments)-1 {
			return fmt.Sprintf("%q has an empty or a dot segment, which no request's path has", shorten(text))
		}
	}
	return ""
}

// regex checks a regular expression.
func regex(text string) string {
	if _, err := regexp.Compile(text); err != nil {
		return fmt.Sprintf("%q is no regular expression (RE2): %s", shorten(text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return ""
}
