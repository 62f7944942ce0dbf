package luaapi

import (
	"errors"
	"strings"
)

// pattern is one compiled path pattern: segments, of which `*` stands for any one and a final `**` for any number, also none.
type pattern struct {
	segments []string
	names    []string // of {name} segments, "" for the others; nil when there is none
	open     bool     // ends in **
}

// compilePattern reads "/api/login", "/api/*/status", "/users/{id}" or "/public/**".
func compilePattern(text string) (pattern, error) {
	if !strings.HasPrefix(text, "/") {
		return pattern{}, errors.New("a path pattern begins with a slash")
	}
	p := pattern{segments: strings.Split(text[1:], "/")}
	for i, segment := range p.segments {
		switch {
		case segment == "**" && i == len(p.segments)-1:
			p.segments, p.open = p.segments[:i], true
		case segment == "**":
			return pattern{}, errors.New("** stands at the end of a path pattern")
		case segment != "*" && strings.Contains(segment, "*"):
			return pattern{}, errors.New("* stands for a whole segment of a path")
		case strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}"):
			if p.names == nil {
				p.names = make([]string, len(p.segments))
			}
			p.segments[i], p.names[i] = "*", segment[1:len(segment)-1]
		}
	}
	return p, nil
}

// match tells whether a path fits. Segments are compared without their ;parameters, as the route table does.
func (p *pattern) match(path string) bool { return p.walk(path, nil) }

// walk matches, and hands what stands at the place of each {name} to take.
func (p *pattern) walk(path string, take func(name, value string)) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	path = path[1:]
	more := true
	for i, want := range p.segments {
		if !more {
			return false
		}
		var segment string
		segment, path, more = strings.Cut(path, "/")
		segment, _, _ = strings.Cut(segment, ";")
		if want == "*" && segment == "" || want != "*" && segment != want {
			return false
		}
		if take != nil && p.names != nil && p.names[i] != "" {
			take(p.names[i], segment)
		}
	}
	return p.open || !more
}

// patterns is a list of them.
type patterns []pattern

func (ps patterns) match(path string) bool {
	for i := range ps {
		if ps[i].match(path) {
			return true
		}
	}
	return false
}
