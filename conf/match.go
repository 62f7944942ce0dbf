package conf

import (
	"fmt"
	"strconv"
	"time"
)

// MatchKind is how a value is compared.
type MatchKind int

// The comparisons of header, query, cookie and body predicates.
const (
	Equals  MatchKind = iota // is Values[0]
	OneOf                    // is one of Values
	Matches                  // the regular expression Values[0] (RE2) finds something in it
	Exists                   // is there, whatever it is
	Absent                   // is not there
)

// Match is one predicate on a named value. Numbers and booleans of a body stand in Values as JSON writes them.
type Match struct {
	Pos    Pos
	Name   string
	Kind   MatchKind
	Values []string
}

// String gives the predicate in one line.
func (m Match) String() string {
	switch m.Kind {
	case OneOf:
		return fmt.Sprintf("%s one of %s", m.Name, quotedList(m.Values))
	case Matches:
		return fmt.Sprintf("%s matches %q", m.Name, m.Values[0])
	case Exists:
		return m.Name + " exists"
	case Absent:
		return m.Name + " is absent"
	}
	return fmt.Sprintf("%s = %q", m.Name, m.Values[0])
}

// matches is a key that holds predicates by name.
func matches[T any](key string, at func(*T) *[]Match, checks ...check) field[T] {
	known := []string{"NAME"}
	if key == "header" {
		known = append(known, "NAME.one_of", "NAME.matches", "NAME.exists") // once is enough for a reader
	}
	return custom(key, func(b *binder, key string, v Value, into *T) {
		t, ok := b.table(key, v)
		if !ok {
			return
		}
		for name, v := range t.All() {
			full := join(key, name)
			b.noteAll(full, v)
			for _, check := range append(checks, notEmpty) {
				if wrong := check(name); wrong != "" {
					b.errs.Add(v.Pos, full, "%s", wrong)
				}
			}
			if m, ok := b.match(full, name, v); ok {
				*at(into) = append(*at(into), m)
			}
		}
	}, known...)
}

// match reads one predicate: a plain value, or a table with one comparison.
func (b *binder) match(key, name string, v Value) (Match, bool) {
	m := Match{Pos: v.Pos, Name: name}
	if v.broken {
		return m, false
	}
	t, isTable := v.V.(*Table)
	if !isTable {
		s, ok := scalar(v)
		if !ok {
			b.wants(key, v, `a text, or a table such as { one_of = ["a", "b"] }, { matches = "^re$" } or { exists = true }`)
		}
		m.Values = []string{s}
		return m, ok
	}
	if t.Len() != 1 {
		b.errs.Add(v.Pos, key, "has %d comparisons: write one of one_of, matches and exists", t.Len())
		return m, false
	}
	for word, v := range t.All() {
		full := join(key, word)
		switch word {
		case "one_of":
			return b.oneOf(full, m, v)
		case "matches":
			s, ok := b.text(full, v, regex)
			m.Kind, m.Values = Matches, []string{s}
			return m, ok
		case "exists":
			is, ok := b.boolean(full, v)
			if m.Kind = Exists; !is {
				m.Kind = Absent
			}
			return m, ok
		default:
			b.errs.Add(v.Pos, full, `unknown comparison: write one_of, matches or exists; a name with dots in it stands in quotes`)
		}
	}
	return m, false
}

func (b *binder) oneOf(key string, m Match, v Value) (Match, bool) {
	items, ok := v.V.([]Value)
	if !ok {
		b.wants(key, v, "a list of texts")
		return m, false
	}
	if len(items) == 0 {
		b.errs.Add(v.Pos, key, "is empty: write at least one text")
		return m, false
	}
	m.Kind = OneOf
	for i, item := range items {
		s, ok := scalar(item)
		if item.broken {
			return m, false
		}
		if !ok {
			b.wants(fmt.Sprintf("%s[%d]", key, i), item, "a text")
			return m, false
		}
		m.Values = append(m.Values, s)
	}
	return m, true
}

// scalar gives the text of a plain value.
func scalar(v Value) (string, bool) {
	switch x := v.V.(type) {
	case string:
		return x, true
	case int64:
		return strconv.FormatInt(x, 10), true
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(x), true
	case time.Time:
		return x.Format(time.RFC3339Nano), true
	}
	return "", false
}
