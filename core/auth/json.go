package auth

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep lists and maps lie in each other.
const maxDepth = 32

// indexed is the number of a map's members from which duplicates are found by an index instead of by comparing.
const indexed = 16

var (
	errSyntax    = errors.New("not JSON")
	errText      = errors.New("text is not Unicode")
	errDuplicate = errors.New("a member appears twice")
	errDepth     = errors.New("nested too deep")
)

// parser reads JSON (RFC 8259) more strictly than the standard library: no member twice in a map, no broken UTF-8, no lone
// surrogates, bounded depth; and numbers keep their text. Strings without escapes share the memory of the text.
type parser struct {
	text  string
	pos   int
	depth int
}

// parseMap reads a text that is one JSON object and nothing else (RFC 7519, section 7.2).
func parseMap(text string) (Value, error) {
	p := parser{text: text}
	p.space()
	if p.peek() != '{' {
		return Value{}, errSyntax
	}
	v, err := p.value()
	if err != nil {
		return Value{}, err
	}
	p.space()
	if p.pos != len(text) {
		return Value{}, errSyntax
	}
	return v, nil
}

// peek is the next byte, 0 at the end; a NUL byte is no valid start of anything either.
func (p *parser) peek() byte {
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// take skips the byte if it comes next.
func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) value() (Value, error) {
	switch c := p.peek(); {
	case c == '"':
		text, err := p.str()
		return Value{kind: String, text: text}, err
	case c == '{':
		return p.nest(Map, '}')
	case c == '[':
		return p.nest(List, ']')
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.word("true", Bool)
	case c == 'f':
		return p.word("false", Bool)
	case c == 'n':
		return p.word("null", Null)
	default:
		return Value{}, errSyntax
	}
}

func (p *parser) word(word string, kind Kind) (Value, error) {
	if len(p.text)-p.pos < len(word) || p.text[p.pos:p.pos+len(word)] != word {
		return Value{}, errSyntax
	}
	p.pos += len(word)
	return Value{kind: kind, text: word}, nil
}

// nest reads a list or a map up to its closing bracket.
func (p *parser) nest(kind Kind, closing byte) (Value, error) {
	if p.depth++; p.depth > maxDepth {
		return Value{}, errDepth
	}
	p.pos++
	v := Value{kind: kind}
	var names map[string]struct{}
	for p.space(); ; p.space() {
		if len(v.members) == 0 {
			if p.take(closing) {
				break
			}
			v.members = make([]member, 0, 8/p.depth)
		}
		m, err := p.member(kind)
		if err != nil {
			return Value{}, err
		}
		if kind == Map && duplicate(v, m.name, &names) {
			return Value{}, errDuplicate
		}
		v.members = append(v.members, m)
		if p.space(); p.take(closing) {
			break
		}
		if !p.take(',') {
			return Value{}, errSyntax
		}
	}
	p.depth--
	return v, nil
}

func (p *parser) member(kind Kind) (m member, err error) {
	if kind == Map {
		if p.peek() != '"' {
			return m, errSyntax
		}
		if m.name, err = p.str(); err != nil {
			return m, err
		}
		if p.space(); !p.take(':') {
			return m, errSyntax
		}
		p.space()
	}
	m.value, err = p.value()
	return m, err
}

// duplicate says that the map has the name already.
func duplicate(v Value, name string, names *map[string]struct{}) bool {
	if len(v.members) < indexed {
		_, found := v.Get(name)
		return found
	}
	if *names == nil {
		*names = make(map[string]struct{}, 4*indexed)
		for i := range v.members {
			(*names)[v.members[i].name] = struct{}{}
		}
	}
	_, found := (*names)[name]
	(*names)[name] = struct{}{}
	return found
}

func (p *parser) number() (Value, error) {
	start := p.pos
	p.take('-')
	if !p.take('0') && !p.digits() {
		return Value{}, errSyntax
	}
	if p.take('.') && !p.digits() {
		return Value{}, errSyntax
	}
	if p.take('e') || p.take('E') {
		_ = p.take('+') || p.take('-')
		if !p.digits() {
			return Value{}, errSyntax
		}
	}
	return Value{kind: Number, text: p.text[start:p.pos]}, nil
}

// digits skips digits and says whether there was one.
func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

// str reads a string whose opening quote comes next.
func (p *parser) str() (string, error) {
	p.pos++
	start, ascii := p.pos, true
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			text := p.text[start:p.pos]
			p.pos++
			if !ascii && !utf8.ValidString(text) {
				return "", errText
			}
			return text, nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", errSyntax
		case c >= utf8.RuneSelf:
			ascii = false
		}
		p.pos++
	}
	return "", errSyntax
}

// escaped goes on with a string that has escapes, the first of which comes next.
func (p *parser) escaped(start int) (string, error) {
	out := append([]byte(nil), p.text[start:p.pos]...)
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return "", errText
			}
			return string(out), nil
		case c < ' ':
			return "", errSyntax
		case c != '\\':
			out = append(out, c)
		default:
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", errSyntax
}

// escape reads what follows a backslash; two escaped surrogates are one character.
func (p *parser) escape() (rune, error) {
	c := p.peek()
	p.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, errSyntax
	}
	r, err := p.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if !p.take('\\') || !p.take('u') {
		return 0, errText
	}
	low, err := p.hex()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, errText
	}
	return r, nil
}

func (p *parser) hex() (rune, error) {
	if len(p.text)-p.pos < 4 {
		return 0, errSyntax
	}
	n, err := strconv.ParseUint(p.text[p.pos:p.pos+4], 16, 16)
	if err != nil {
		return 0, errSyntax
	}
	p.pos += 4
	return rune(n), nil
}
