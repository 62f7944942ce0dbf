package server

import (
	"net/http"

	"github.com/moongate/moongate/core"
)

// lines copies header lines into the standard library's form, which keeps them until after the handler: the names and values of all lines lie
// in one string, and their lists in one slice.
type lines struct {
	text []byte
	ends []int // of name and value in turn
}

// add takes a line. Its name is spelled as the standard library looks names up: each word with a capital.
func (l *lines) add(f *core.Field) {
	start := len(l.text)
	l.text = append(l.text, f.Name...)
	upper := true
	for i, c := range l.text[start:] {
		switch {
		case upper && 'a' <= c && c <= 'z':
			l.text[start+i] = c - 0x20
		case !upper && 'A' <= c && c <= 'Z':
			l.text[start+i] = c + 0x20
		}
		upper = c == '-'
	}
	l.ends = append(l.ends, len(l.text))
	l.text = append(l.text, core.Trim(f.Value)...) // white space around it makes it malformed
	l.ends = append(l.ends, len(l.text))
}

// fill puts the lines into h, in their order.
func (l *lines) fill(h http.Header) {
	all := string(l.text)
	lists := make([]string, len(l.ends)/2)
	from := 0
	for i := 0; i < len(l.ends); i += 2 {
		name, value := all[from:l.ends[i]], all[l.ends[i]:l.ends[i+1]]
		from = l.ends[i+1]
		if had := h[name]; had != nil {
			h[name] = append(had, value)
			continue
		}
		lists[i/2] = value
		h[name] = lists[i/2 : i/2+1 : i/2+1]
	}
	l.text, l.ends = l.text[:0], l.ends[:0]
}
