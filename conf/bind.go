package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// binder writes values into structs and notes what cannot be meant.
type binder struct {
	errs  Errors
	warn  Errors
	known []string       // every key there is, for hints
	pos   map[string]Pos // every key that was written, dotted, to its place

	misnamed []string // upstreams whose names are none, "" where it may be any: who refers to one of them is not wrong besides
}

// field is one key of a table: its name, and what writes a value into the table's struct. keys lists what is known
// below it; nil for a plain value.
type field[T any] struct {
	key  string
	bind func(b *binder, key string, v Value, into *T)
	keys func() []string
}

// section is the schema of one table: all keys that it knows.
type section[T any] []field[T]

// bind writes every key of t into the struct. Unknown keys are refused with the nearest known one.
func (s section[T]) bind(b *binder, path string, t *Table, into *T) {
	for key, v := range t.All() {
		full := join(path, key)
		b.note(full, v.Pos)
		if f, ok := s.find(key); ok {
			if !v.broken {
				f.bind(b, full, v, into)
			}
			continue
		}
		b.errs.Add(v.Pos, full, "unknown key%s", s.hint(path, key, b.known))
	}
}

func (s section[T]) find(key string) (field[T], bool) {
	for _, f := range s {
		if f.key == key {
			return f, true
		}
	}
	return field[T]{}, false
}

// names lists the keys of the section itself.
func (s section[T]) names() []string {
	names := make([]string, len(s))
	for i, f := range s {
		names[i] = f.key
	}
	return names
}

// all lists the keys of the section and below it, dotted.
func (s section[T]) all() []string {
	var all []string
	for _, f := range s {
		if f.keys == nil {
			all = append(all, f.key)
			continue
		}
		for _, key := range f.keys() {
			all = append(all, join(f.key, key))
		}
	}
	return all
}

// note remembers where a key was written.
func (b *binder) note(key string, pos Pos) { b.pos[key] = pos }

// written tells whether a key stands in the file; defaults do not.
func (b *binder) written(key string) bool {
	_, ok := b.pos[key]
	return ok
}

// where returns the place of a key, or other when it was not written.
func (b *binder) where(key string, other Pos) Pos {
	if pos, ok := b.pos[key]; ok {
		return pos
	}
	return other
}

// wants notes a value of the wrong type.
func (b *binder) wants(key string, v Value, want string) {
	b.errs.Add(v.Pos, key, "wants %s, not %s", want, describe(v))
}

// describe names a value for an error: its type and, unless it is secret, its text.
func describe(v Value) string {
	kind := "a value"
	switch v.V.(type) {
	case string:
		kind = "the string"
	case int64:
		kind = "the number"
	case float64:
		kind = "the number"
	case bool:
		kind = "the boolean"
	case time.Time:
		if strings.HasSuffix(v.V.(time.Time).Location().String(), "-local") {
			return "a time without an offset"
		}
		kind = "the time"
	case []Value:
		return "a list"
	case *Table:
		return "a table"
	}
	if v.Secret {
		return kind + " given"
	}
	return kind + " " + shorten(v.Text())
}

// check tells what is wrong with a text, "" when nothing is. The message begins with a verb or with what is right.
type check func(text string) string

// text is a key that holds a string.
func text[T any](key string, at func(*T) *string, checks ...check) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		if s, ok := b.text(key, v, checks...); ok {
			*at(into) = s
		}
	}}
}

// text takes a string out of a value.
func (b *binder) text(key string, v Value, checks ...check) (string, bool) {
	s, ok := v.V.(string)
	if v.broken {
		return "", false
	}
	if !ok {
		b.wants(key, v, "a string")
		return "", false
	}
	for _, check := range checks {
		if wrong := check(s); wrong != "" {
			b.errs.Add(v.Pos, key, "%s", wrong)
			return "", false
		}
	}
	return s, true
}

// secret is a key that holds a string which is never shown.
func secret[T any](key string, at func(*T) *Secret) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		v.Secret = true
		if s, ok := b.text(key, v); ok {
			*at(into) = Secret(s)
		}
	}}
}

// oneOf is a key that holds one of a few words.
func oneOf[T any](key string, at func(*T) *string, words ...string) field[T] {
	return text(key, at, amongst(words...))
}

// amongst checks that a text is one of a few words.
func amongst(words ...string) check {
	return func(text string) string {
		for _, word := range words {
			if word == text {
				return ""
			}
		}
		return fmt.Sprintf("%q is not known%s: it is one of %s", text, nearHint(text, words), quotedList(words))
	}
}

// list is a key that holds a list of strings.
func list[T any](key string, at func(*T) *[]string, checks ...check) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		*at(into) = b.list(key, v, false, checks...)
	}}
}

// words is a key that holds a string or a list of strings.
func words[T any](key string, at func(*T) *[]string, checks ...check) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		*at(into) = b.list(key, v, true, checks...)
	}}
}

// list takes strings out of a value; single allows one string without brackets. Repetitions are refused.
func (b *binder) list(key string, v Value, single bool, checks ...check) []string {
	if _, ok := v.V.(string); ok && single {
		v.V = []Value{v}
	}
	items, ok := v.V.([]Value)
	if !ok {
		if single {
			b.wants(key, v, "a string or a list of strings")
		} else {
			b.wants(key, v, "a list of strings")
		}
		return nil
	}
	seen := map[string]bool{}
	texts := make([]string, 0, len(items))
	for i, item := range items {
		s, ok := b.text(fmt.Sprintf("%s[%d]", key, i), item, checks...)
		switch {
		case !ok:
		case seen[s]:
			b.errs.Add(item.Pos, key, "%q stands twice in the list", s)
		default:
			seen[s] = true
			texts = append(texts, s)
		}
	}
	return texts
}

// boolean is a key that holds true or false.
func boolean[T any](key string, at func(*T) *bool) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		if is, ok := b.boolean(key, v); ok {
			*at(into) = is
		}
	}}
}

func (b *binder) boolean(key string, v Value) (is, ok bool) {
	switch x := v.V.(type) {
	case bool:
		return x, true
	case string:
		if v.FromEnv && (x == "true" || x == "false") {
			return x == "true", true
		}
	}
	b.wants(key, v, "true or false")
	return false, false
}

// integer is a key that holds a whole number within bounds.
func integer[T any](key string, at func(*T) *int, least, most int) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		if n, ok := b.integer(key, v, int64(least), int64(most)); ok {
			*at(into) = int(n)
		}
	}}
}

// integer takes a whole number out of a value. A float without a fraction is one, and so is a string from the environment.
func (b *binder) integer(key string, v Value, least, most int64) (int64, bool) {
	n, ok := v.V.(int64)
	switch x := v.V.(type) {
	case float64:
		n = int64(x)
		ok = float64(n) == x && x < 1<<53 && x > -1<<53
	case string:
		if v.FromEnv {
			var err error
			n, err = strconv.ParseInt(x, 10, 64)
			ok = err == nil
		}
	}
	if !ok {
		b.wants(key, v, "a whole number")
		return 0, false
	}
	if n < least || n > most {
		b.errs.Add(v.Pos, key, "%d is out of bounds: it is %s", n, bounds(strconv.FormatInt(least, 10), strconv.FormatInt(most, 10), most >= 1<<31-1))
		return 0, false
	}
	return n, true
}

// bounds words a range.
func bounds(least, most string, open bool) string {
	if open {
		return "at least " + least
	}
	return "from " + least + " to " + most
}

// duration is a key that holds a duration with its unit, within bounds.
func duration[T any](key string, at func(*T) *time.Duration, least, most time.Duration) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		if d, ok := b.duration(key, v, least, most); ok {
			*at(into) = d
		}
	}}
}

func (b *binder) duration(key string, v Value, least, most time.Duration) (time.Duration, bool) {
	s, ok := v.V.(string)
	switch x := v.V.(type) {
	case int64, float64:
		b.errs.Add(v.Pos, key, `a number has no unit: write "%vs"`, x)
		return 0, false
	}
	if !ok {
		b.wants(key, v, `a duration such as "5s"`)
		return 0, false
	}
	d, err := ParseDuration(s)
	if err != nil {
		b.errs.Add(v.Pos, key, "%s", err)
		return 0, false
	}
	if d < least || d > most {
		b.errs.Add(v.Pos, key, "%q is out of bounds: it is from %s to %s", s, formatDuration(least), formatDuration(most))
		return 0, false
	}
	return d, true
}

// formatDuration renders 10m instead of Go's 10m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// speed is a key that holds a number of bytes each second within bounds.
func speed[T any](key string, at func(*T) *int64, least, most int64) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		text, ok := v.V.(string)
		if !ok {
			b.wants(key, v, `bytes each second, such as "100B/s"`)
			return
		}
		n, err := ParseSpeed(text)
		switch {
		case err != nil:
			b.errs.Add(v.Pos, key, "%s", err)
		case n < least || n > most:
			b.errs.Add(v.Pos, key, "%s is out of bounds: it is from %s to %s", formatSpeed(n), formatSpeed(least), formatSpeed(most))
		default:
			*at(into) = n
		}
	}}
}

// size is a key that holds a number of bytes within bounds.
func size[T any](key string, at func(*T) *int64, least, most int64) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		var n int64
		switch x := v.V.(type) {
		case int64:
			n = x
		case string:
			var err error
			if n, err = ParseSize(x); err != nil {
				b.errs.Add(v.Pos, key, "%s", err)
				return
			}
		default:
			b.wants(key, v, `a size such as "64KiB"`)
			return
		}
		if n < least || n > most {
			b.errs.Add(v.Pos, key, "%s is out of bounds: it is from %s to %s", formatSize(n), formatSize(least), formatSize(most))
			return
		}
		*at(into) = n
	}}
}

// sub is a key that holds a table of its own; at says where it goes and may note its place.
func sub[T, S any](key string, s section[S], at func(*T, Pos) *S) field[T] {
	return field[T]{key: key, keys: s.all, bind: func(b *binder, key string, v Value, into *T) {
		if t, ok := b.table(key, v); ok {
			s.bind(b, key, t, at(into, t.Pos))
		}
	}}
}

// custom is a key with a reading of its own; known lists the keys below it, if any.
func custom[T any](key string, bind func(b *binder, key string, v Value, into *T), known ...string) field[T] {
	f := field[T]{key: key, bind: bind}
	if len(known) > 0 {
		f.keys = func() []string { return known }
	}
	return f
}

// table takes a table out of a value.
func (b *binder) table(key string, v Value) (*Table, bool) {
	t, ok := v.V.(*Table)
	if !ok {
		b.wants(key, v, "a table")
	}
	return t, ok
}

// named visits the tables of one kind, [KEY.NAME], whose names are shown to people.
func (b *binder) named(key string, v Value, visit func(path, name string, t *Table)) {
	all, _ := b.table(key, v)
	for name, v := range all.All() {
		path := join(key, name)
		b.note(path, v.Pos)
		t, ok := b.table(path, v)
		if !ok {
			continue
		}
		if wrong := displayName(name); wrong != "" {
			b.errs.Add(v.Pos, path, "%s", wrong)
		}
		visit(path, name, t)
	}
}

// tables takes the tables out of a list of them.
func (b *binder) tables(key string, v Value) []*Table {
	items, ok := v.V.([]Value)
	if !ok {
		want := "a list of tables: write [[" + key + "]]"
		b.wants(key, v, want)
		return nil
	}
	var tables []*Table
	for i, item := range items {
		if t, ok := b.table(fmt.Sprintf("%s[%d]", key, i), item); ok {
			tables = append(tables, t)
		}
	}
	return tables
}
