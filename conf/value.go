package conf

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is one value of the configuration with its place. V is a string, int64, float64, bool, time.Time, []Value or
// *Table; strings have their ${ENV} references resolved.
type Value struct {
	Pos Pos
	V   any
	// FromEnv tells that a reference to the environment was resolved in it. Such a string may stand for a number or a
	// boolean, because a reference cannot be written outside of a string.
	FromEnv bool
	// Secret tells that the value must not be shown: by its key's name, or because it came from the environment.
	Secret bool

	broken bool // a reference in it could not be resolved, which was noted
}

// Broken tells that a reference in v, or in something within it, could not be resolved. That was noted, and v is not what was meant.
func (v Value) Broken() bool {
	switch within := v.V.(type) {
	case []Value:
		return slices.ContainsFunc(within, Value.Broken)
	case *Table:
		for _, item := range within.All() {
			if item.Broken() {
				return true
			}
		}
	}
	return v.broken
}

// Table is an immutable table of settings that remembers the order and the place of its keys. The zero value and nil
// are empty tables.
type Table struct {
	Pos    Pos
	keys   []string
	values map[string]Value
}

// Get returns the value of a key; ok is false when it was not written.
func (t *Table) Get(key string) (v Value, ok bool) {
	if t == nil {
		return Value{}, false
	}
	v, ok = t.values[key]
	return v, ok
}

// Len returns the number of keys.
func (t *Table) Len() int {
	if t == nil {
		return 0
	}
	return len(t.keys)
}

// All walks the keys in the order they were written.
func (t *Table) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if t == nil {
			return
		}
		for _, key := range t.keys {
			if !yield(key, t.values[key]) {
				return
			}
		}
	}
}

// Over returns t laid over base: a key of t replaces the same key of base whole (tables and lists are not mixed). Each
// key keeps its own place.
func (t *Table) Over(base *Table) *Table {
	if t.Len() == 0 && base.Len() > 0 {
		return base
	}
	if base.Len() == 0 && t != nil {
		return t
	}
	merged := &Table{}
	for key, v := range base.All() {
		merged.set(key, v)
	}
	for key, v := range t.All() {
		merged.set(key, v)
	}
	if t != nil {
		merged.Pos = t.Pos
	} else if base != nil {
		merged.Pos = base.Pos
	}
	return merged
}

// without returns the table less some keys.
func (t *Table) without(drop []string) *Table {
	rest := &Table{Pos: t.Pos}
	for key, v := range t.All() {
		if !slices.Contains(drop, key) {
			rest.set(key, v)
		}
	}
	return rest
}

func (t *Table) set(key string, v Value) {
	if t.values == nil {
		t.values = make(map[string]Value)
	}
	if _, ok := t.values[key]; !ok {
		t.keys = append(t.keys, key)
	}
	t.values[key] = v
}

// Text renders the value as TOML in one line; secrets are masked.
func (v Value) Text() string { return v.render(true) }

// bare renders the value with its secrets, to compare it.
func (v Value) bare() string { return v.render(false) }

func (v Value) render(mask bool) string {
	if v.Secret && mask {
		return masked
	}
	switch x := v.V.(type) {
	case string:
		return strconv.Quote(x)
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case []Value:
		parts := make([]string, len(x))
		for i := range x {
			parts[i] = x[i].render(mask)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *Table:
		return x.render(mask)
	}
	return fmt.Sprint(v.V)
}

// hides tells whether Text leaves anything out.
func (v Value) hides() bool {
	if v.Secret {
		return true
	}
	switch x := v.V.(type) {
	case []Value:
		return slices.ContainsFunc(x, Value.hides)
	case *Table:
		for _, v := range x.All() {
			if v.hides() {
				return true
			}
		}
	}
	return false
}

// Text renders the table as an inline table of TOML; secrets are masked.
func (t *Table) Text() string { return t.render(true) }

func (t *Table) render(mask bool) string {
	parts := make([]string, 0, t.Len())
	for key, v := range t.All() {
		parts = append(parts, key+" = "+v.render(mask))
	}
	if !mask {
		slices.Sort(parts) // the order of keys says nothing
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Format prints the value without its secrets, whatever the verb.
func (v Value) Format(f fmt.State, _ rune) { io.WriteString(f, v.Text()) }

// MarshalJSON gives the text without its secrets as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.Text()) }

// Format prints the table without its secrets, whatever the verb.
func (t Table) Format(f fmt.State, _ rune) { io.WriteString(f, t.Text()) }

// MarshalJSON gives the text without its secrets as a JSON string.
func (t Table) MarshalJSON() ([]byte, error) { return json.Marshal(t.Text()) }

// equal compares what two values say, not where they stand.
func (v Value) equal(w Value) bool {
	switch x := v.V.(type) {
	case []Value:
		y, ok := w.V.([]Value)
		return ok && slices.EqualFunc(x, y, Value.equal)
	case *Table:
		y, ok := w.V.(*Table)
		return ok && x.Equal(y)
	case time.Time:
		y, ok := w.V.(time.Time)
		return ok && x.Equal(y)
	}
	return v.V == w.V
}

// Equal tells whether two tables have the same keys with the same values, in any order, wherever they stand.
func (t *Table) Equal(u *Table) bool {
	if t.Len() != u.Len() {
		return false
	}
	for key, v := range t.All() {
		w, ok := u.Get(key)
		if !ok || !v.equal(w) {
			return false
		}
	}
	return true
}

// Rate reads the value as a rate: a number of events per second, or a text that ParseRate knows.
func (v Value) Rate() (Rate, error) {
	switch x := v.V.(type) {
	case int64:
		return RateOf(float64(x))
	case float64:
		return RateOf(x)
	case string:
		return ParseRate(x)
	}
	return Rate{}, fmt.Errorf(`wants a rate such as "5/s" or a number per second, not %s`, describe(v))
}
