package conf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep arrays, inline tables and dotted keys may nest; parsers recurse.
const maxDepth = 32

// mark is the line that a key or an item of a list begins on. It grows beside the tree of values that the TOML library
// gives: kids for a table, items for a list, neither for a plain value. The library knows no lines of decoded keys.
type mark struct {
	line  int
	keys  []string
	kids  map[string]*mark
	items []*mark
	named bool // has its own header or value; otherwise it only lies on the way to one
}

// kid returns the mark of a key below m, made at line when it is new.
func (m *mark) kid(key string, line int) *mark {
	k := m.kids[key]
	if k == nil {
		k = &mark{line: line}
		if m.kids == nil {
			m.kids = make(map[string]*mark)
		}
		m.kids[key] = k
		m.keys = append(m.keys, key)
	}
	return k
}

// last is where keys go that are written under the name of m: its last item when m is a list of tables.
func (m *mark) last() *mark {
	if n := len(m.items); n > 0 {
		return m.items[n-1]
	}
	return m
}

// item appends an item that begins at line.
func (m *mark) item(line int) *mark {
	i := &mark{line: line, named: true}
	m.items = append(m.items, i)
	return i
}

// at returns the mark of item i, or that of the whole list.
func (m *mark) at(i int) *mark {
	if i < len(m.items) {
		return m.items[i]
	}
	return m
}

// markText finds the lines of all keys of a TOML text. It trusts the text to be valid and goes on as well as it can
// where it is not: the library reports what is wrong. Nesting beyond maxDepth is the one fault that it finds itself.
func markText(text string) (root *mark, end ending, fault *Error) {
	s := &scanner{text: text, line: 1}
	root = &mark{line: 1, named: true}
	table := root
	for s.fault == nil {
		s.blank(true)
		if s.done() {
			break
		}
		if s.peek() == '[' {
			table = s.header(root)
		} else {
			s.pair(table, 0)
		}
	}
	return root, s.end, s.fault
}

// ending tells what a text stops in the middle of, when its last line has no line end.
type ending int

const (
	endsWhole     ending = iota // a line end, or something that closes by itself: a quote, a bracket, true, false
	endsInComment               // the rest of the file may be missing
	endsInNumber                // more digits may be missing
)

// scanner walks over TOML text. Every method makes progress or stands at the end, whatever the text.
type scanner struct {
	text  string
	at    int
	line  int
	end   ending
	fault *Error
}

func (s *scanner) done() bool { return s.at >= len(s.text) || s.fault != nil }

func (s *scanner) peek() byte {
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) has(prefix string) bool {
	return strings.HasPrefix(s.text[min(s.at, len(s.text)):], prefix)
}

// skip moves n bytes on and counts the lines among them.
func (s *scanner) skip(n int) {
	end := min(s.at+n, len(s.text))
	s.line += strings.Count(s.text[s.at:end], "\n")
	s.at = end
}

// blank skips spaces and comments, and line ends when lines is set.
func (s *scanner) blank(lines bool) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case c == '\n' && lines:
			s.skip(1)
		case c == '#':
			if s.restOfLine(); s.at == len(s.text) {
				s.end = endsInComment
			}
		default:
			return
		}
	}
}

// restOfLine skips up to the next line end, not over it.
func (s *scanner) restOfLine() {
	if n := strings.IndexByte(s.text[s.at:], '\n'); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.text)
	}
}

// header reads "[a.b]" or "[[a.b]]" and returns the table that follows.
func (s *scanner) header(root *mark) *mark {
	line := s.line
	list := s.has("[[")
	s.skip(1)
	if list {
		s.skip(1)
	}
	keys := s.keys()
	for s.peek() == ']' {
		s.at++
	}
	s.blank(false)
	s.restOfLine()
	at := root
	for i, key := range keys {
		at = at.kid(key, line)
		if i < len(keys)-1 {
			at = at.last()
		}
	}
	switch {
	case len(keys) == 0:
		return &mark{line: line}
	case list:
		return at.item(line)
	}
	if at = at.last(); !at.named {
		at.line, at.named = line, true
	}
	return at
}

// pair reads "key = value" into table.
func (s *scanner) pair(table *mark, depth int) {
	before, line := s.at, s.line
	keys := s.keys()
	s.blank(false)
	if len(keys) == 0 || s.peek() != '=' {
		s.restOfLine()
		if s.at == before {
			s.skip(1)
		}
		return
	}
	s.skip(1)
	s.blank(false)
	at := table
	for i, key := range keys {
		at = at.kid(key, line)
		if i < len(keys)-1 {
			at = at.last()
		}
	}
	at.named = true
	s.value(at, depth)
}

// keys reads a dotted key: bare, "basic" and 'literal' parts.
func (s *scanner) keys() []string {
	var keys []string
	for {
		s.blank(false)
		var key string
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			key = s.quoted(c)
		case isBare(c):
			begin := s.at
			for isBare(s.peek()) {
				s.at++
			}
			key = s.text[begin:s.at]
		default:
			return keys
		}
		keys = append(keys, key)
		if len(keys) > maxDepth {
			s.tooDeep()
			return keys
		}
		s.blank(false)
		if s.peek() != '.' {
			return keys
		}
		s.at++
	}
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= utf8.RuneSelf
}

// value skips over a value and marks what is inside of it.
func (s *scanner) value(m *mark, depth int) {
	if depth > maxDepth {
		s.tooDeep()
		return
	}
	switch c := s.peek(); {
	case s.has(`"""`) || s.has(`'''`):
		s.multiline(c)
	case c == '"' || c == '\'':
		s.quoted(c)
	case c == '[':
		s.skip(1)
		s.list(m, depth)
	case c == '{':
		s.skip(1)
		s.inline(m, depth)
	default:
		begin := s.at
		for s.at < len(s.text) && !strings.ContainsRune(",]}\n#", rune(s.text[s.at])) {
			s.at++
		}
		if word := strings.TrimSpace(s.text[begin:s.at]); s.at == len(s.text) && word != "true" && word != "false" {
			s.end = endsInNumber
		}
	}
}

// list reads the items of an array up to its bracket.
func (s *scanner) list(m *mark, depth int) {
	for !s.done() {
		s.blank(true)
		switch s.peek() {
		case ']':
			s.skip(1)
			return
		case ',', '}', 0:
			s.skip(1)
		default:
			s.value(m.item(s.line), depth+1)
		}
	}
}

// inline reads the pairs of an inline table up to its brace.
func (s *scanner) inline(m *mark, depth int) {
	for !s.done() {
		s.blank(true)
		switch s.peek() {
		case '}':
			s.skip(1)
			return
		case ',', ']', 0:
			s.skip(1)
		default:
			s.pair(m, depth+1)
		}
	}
}

// multiline skips a string in three quotes; up to two more quotes may stand before the closing three.
func (s *scanner) multiline(quote byte) {
	s.skip(3)
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\\' && quote == '"':
			s.skip(2)
		case c == quote && s.has(strings.Repeat(string(quote), 3)):
			s.skip(3)
			for range 2 {
				if s.peek() == quote {
					s.skip(1)
				}
			}
			return
		default:
			s.skip(1)
		}
	}
}

// quoted reads a string of one line and returns its text.
func (s *scanner) quoted(quote byte) string {
	var text strings.Builder
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == quote:
			s.at++
			return text.String()
		case c == '\n':
			return text.String()
		case c == '\\' && quote == '"':
			s.escape(&text)
		default:
			text.WriteByte(c)
			s.at++
		}
	}
	return text.String()
}

// escape reads a backslash and what it stands for.
func (s *scanner) escape(text *strings.Builder) {
	s.at++
	c := s.peek()
	if c == '\n' || c == 0 {
		return
	}
	s.at++
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		if i := strings.IndexByte("btnfre", c); i >= 0 {
			c = "\b\t\n\f\r\x1b"[i]
		}
		text.WriteByte(c)
		return
	}
	end := min(s.at+digits, len(s.text))
	if code, err := strconv.ParseUint(s.text[s.at:end], 16, 32); err == nil {
		text.WriteRune(rune(code))
		s.at = end
	}
}

func (s *scanner) tooDeep() {
	if s.fault == nil {
		s.fault = &Error{Pos: Pos{Line: s.line}, Want: fmt.Sprintf("values nest more than %d deep: flatten them", maxDepth)}
	}
}
