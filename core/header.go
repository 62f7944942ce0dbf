package core

import "unsafe"

// Field is one header line. Name keeps the spelling it arrived in; Kind is what the gateway itself knows the name as.
// Both slices are read-only and may lie in a connection's buffer: they are valid until the exchange is released.
type Field struct {
	Name  []byte
	Value []byte
	Kind  Kind
}

// Header is an ordered list of header fields. Any codec fills it without copying, and it is read in place: lookups are linear
// over a list that rarely has more than twenty entries, compare names without regard to ASCII case, and allocate nothing.
// The zero value is empty and ready. A Header has one owner; it is not safe for concurrent use.
type Header struct {
	fields []Field
}

// Bytes views s as a byte slice without copying. The result must never be written to.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Reset empties h and keeps its memory.
func (h *Header) Reset() {
	clear(h.fields)
	h.fields = h.fields[:0]
}

// Len is the number of lines.
func (h *Header) Len() int { return len(h.fields) }

// Fields returns the lines in order. The slice is h's own: it may be read until the next change.
func (h *Header) Fields() []Field { return h.fields }

// Append adds a line whose slices the caller keeps alive and unchanged for the life of the exchange. Codecs use it.
func (h *Header) Append(name, value []byte, kind Kind) {
	h.fields = append(h.fields, Field{Name: name, Value: value, Kind: kind})
}

// Add adds a line after all others.
func (h *Header) Add(name, value string) {
	h.Append(Bytes(name), Bytes(value), KindOf(Bytes(name)))
}

// Set leaves exactly one line of that name. It takes the place of the first one there was, or the end.
func (h *Header) Set(name, value string) { h.SetBytes(name, Bytes(value)) }

// SetBytes is Set for a value that the caller keeps alive and unchanged for the life of the exchange.
func (h *Header) SetBytes(name string, value []byte) {
	key := Bytes(name)
	kind := KindOf(key)
	for i := range h.fields {
		if f := &h.fields[i]; f.Kind == kind && EqualFold(f.Name, key) {
			f.Value = value
			h.delFrom(i+1, key, kind)
			return
		}
	}
	h.Append(key, value, kind)
}

// Get is the value of the first line of that name, nil when there is none; an empty value is not nil.
func (h *Header) Get(name string) []byte {
	key := Bytes(name)
	for i := range h.fields {
		if f := &h.fields[i]; len(f.Name) == len(key) && EqualFold(f.Name, key) {
			return f.Value
		}
	}
	return nil
}

// GetKind is the value of the first line of that kind, nil when there is none.
func (h *Header) GetKind(kind Kind) []byte {
	for i := range h.fields {
		if h.fields[i].Kind == kind {
			return h.fields[i].Value
		}
	}
	return nil
}

// CountKind is the number of lines of that kind.
func (h *Header) CountKind(kind Kind) int {
	n := 0
	for i := range h.fields {
		if h.fields[i].Kind == kind {
			n++
		}
	}
	return n
}

// Has tells whether there is a line of that name.
func (h *Header) Has(name string) bool { return h.Get(name) != nil }

// Del removes every line of that name and tells how many there were.
func (h *Header) Del(name string) int {
	key := Bytes(name)
	return h.delFrom(0, key, KindOf(key))
}

// DelFunc removes every line that drop accepts.
func (h *Header) DelFunc(drop func(*Field) bool) {
	kept := h.fields[:0]
	for i := range h.fields {
		if !drop(&h.fields[i]) {
			kept = append(kept, h.fields[i])
		}
	}
	clear(h.fields[len(kept):])
	h.fields = kept
}

// DelKind removes every line of that kind.
func (h *Header) DelKind(kind Kind) {
	for i := range h.fields {
		if h.fields[i].Kind == kind {
			h.DelFunc(func(f *Field) bool { return f.Kind == kind })
			return
		}
	}
}

// CopyFrom replaces h's lines by a copy of o's list; names and values are shared.
func (h *Header) CopyFrom(o *Header) {
	h.fields = append(h.fields[:0], o.fields...)
}

// CloneFrom replaces h's lines by copies of o's, which lie in memory of their own. Those that belong to one connection are left out.
func (h *Header) CloneFrom(o *Header) {
	size := 0
	for i := range o.fields {
		size += len(o.fields[i].Name) + len(o.fields[i].Value)
	}
	room := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		room = append(room, b...)
		return room[len(room)-len(b) : len(room) : len(room)]
	}
	h.Reset()
	for _, f := range o.fields {
		if !f.Kind.Hop() {
			h.Append(keep(f.Name), keep(f.Value), f.Kind)
		}
	}
}

func (h *Header) delFrom(start int, key []byte, kind Kind) int {
	n := start
	for i := start; i < len(h.fields); i++ {
		if f := &h.fields[i]; f.Kind == kind && len(f.Name) == len(key) && EqualFold(f.Name, key) {
			continue
		}
		if n != i {
			h.fields[n] = h.fields[i]
		}
		n++
	}
	removed := len(h.fields) - n
	clear(h.fields[n:])
	h.fields = h.fields[:n]
	return removed
}

// DropNominated removes the lines that the header's Connection lines name (RFC 9110 section 7.6.1). All Connection lines count as one
// list. Names that the gateway writes itself, or that frame the message, are not taken by it.
func (h *Header) DropNominated() {
	for list := h.takeKind(KindConnection); list != nil; list = h.takeKind(KindConnection) {
		for item, rest := NextItem(list); item != nil; item, rest = NextItem(rest) {
			switch KindOf(item) {
			case KindHost, KindConnection, KindContentLength, KindTransferEncoding, KindTE, KindUpgrade, KindTrailer, KindHop:
			default:
				h.DelFunc(func(f *Field) bool { return f.Kind != KindConnection && EqualFold(f.Name, item) })
			}
		}
	}
}

// takeKind removes the first line of that kind and returns its value, nil when there is none.
func (h *Header) takeKind(kind Kind) []byte {
	for i := range h.fields {
		if h.fields[i].Kind == kind {
			value := h.fields[i].Value
			h.fields = append(h.fields[:i], h.fields[i+1:]...)
			return value
		}
	}
	return nil
}
