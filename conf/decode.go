package conf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// decoder turns TOML texts into tables of values with places.
type decoder struct {
	refs references
	errs Errors
	warn Errors
}

// decode reads one file's text; nil when the text is no TOML at all, for which an error was noted.
func (d *decoder) decode(file string, raw []byte) *Table {
	text, err := plainText(raw)
	if err != nil {
		d.errs.Add(Pos{File: file, Line: 1}, "", "%s", err)
		return nil
	}
	marks, end, fault := markText(text)
	if fault == nil {
		var values map[string]any
		if values, fault = parse(text); fault == nil {
			d.checkEnd(file, text, end)
			return d.table(file, values, marks, "")
		}
	}
	fault.Pos.File = file
	d.errs = append(d.errs, *fault)
	return nil
}

// plainText takes the byte order mark away and refuses what is empty or no UTF-8.
func plainText(raw []byte) (string, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	head := raw[:min(len(raw), 4)]
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")), bytes.HasPrefix(raw, []byte("\xfe\xff")), bytes.IndexByte(head, 0) >= 0:
		return "", errors.New("the file is UTF-16 or UTF-32: save it as UTF-8")
	case len(bytes.TrimSpace(raw)) == 0:
		return "", errors.New("the file is empty: it was cut or not written yet")
	case !utf8.Valid(raw):
		line := 1 + bytes.Count(raw[:firstInvalid(raw)], []byte("\n"))
		return "", fmt.Errorf("line %d is no UTF-8: save the file as UTF-8", line)
	}
	return string(raw), nil
}

func firstInvalid(raw []byte) int {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(raw)
}

// checkEnd refuses a text that stops in the middle of a comment and warns of one that stops in a number.
func (d *decoder) checkEnd(file, text string, end ending) {
	pos := Pos{File: file, Line: 1 + strings.Count(text, "\n")}
	switch end {
	case endsInComment:
		d.errs.Add(pos, "", "the file ends in a comment without a line end, so it may be cut: end its last line")
	case endsInNumber:
		d.warn.Add(pos, "", "the file ends in a number without a line end, so it may be cut: end its last line")
	}
}

// parse gives the library's tree, or its complaint with the line it knows.
func parse(text string) (values map[string]any, fault *Error) {
	defer func() {
		// The library is written with panics; one that it does not catch must end the load, not the process.
		if r := recover(); r != nil {
			fault = &Error{Pos: Pos{Line: 1}, Want: fmt.Sprintf("the TOML cannot be read: %s", shorten(fmt.Sprint(r)))}
		}
	}()
	if _, err := toml.Decode(text, &values); err != nil {
		fault = &Error{Pos: Pos{Line: 1}, Want: "the TOML is wrong: " + err.Error()}
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			fault.Pos.Line = max(1, syntax.Position.Line)
			fault.Want = "the TOML is wrong: " + strings.ReplaceAll(syntax.Message, "\n", " ")
			if strings.Contains(syntax.Message, "EOF") {
				fault.Want += ": the file may be cut"
			}
		}
	}
	return values, fault
}

// table gives the library's values the places of the marks.
func (d *decoder) table(file string, values map[string]any, marks *mark, path string) *Table {
	t := &Table{Pos: Pos{File: file, Line: marks.line}}
	for _, key := range marks.keys {
		if v, ok := values[key]; ok {
			t.set(key, d.value(file, v, marks.kids[key], join(path, key), namesSecret(key)))
		}
	}
	return t
}

func (d *decoder) value(file string, v any, m *mark, path string, secret bool) Value {
	out := Value{Pos: Pos{File: file, Line: m.line}, Secret: secret}
	switch v := v.(type) {
	case string:
		text, found, err := d.refs.expand(v)
		if err != nil {
			d.errs.Add(out.Pos, path, "%s", err)
			text, out.broken = v, true
		}
		out.V, out.FromEnv = text, found
		out.Secret = secret || found
	case map[string]any:
		out.V = d.table(file, v, m, path)
	case []map[string]any:
		items := make([]Value, len(v))
		for i := range v {
			items[i] = d.value(file, v[i], m.at(i), itemPath(path, i, v[i]), secret)
		}
		out.V = items
	case []any:
		items := make([]Value, len(v))
		for i := range v {
			items[i] = d.value(file, v[i], m.at(i), fmt.Sprintf("%s[%d]", path, i), secret)
		}
		out.V = items
	case time.Time, int64, float64, bool:
		out.V = v
	default:
		out.V = fmt.Sprint(v)
	}
	return out
}

// itemPath names an item of a list of tables by its name, or else by its number.
func itemPath(path string, i int, item map[string]any) string {
	if name, ok := item["name"].(string); ok && name != "" {
		return join(path, name)
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

// join makes a dotted key.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
