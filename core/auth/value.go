package auth

// Kind is the JSON type of a Value.
type Kind uint8

// The kinds of values. Null is the kind of the zero Value.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// Value is one JSON value as it stood in a token. It is immutable and may be read by any number of goroutines.
type Value struct {
	kind    Kind
	text    string // a string's content; a number, true, false as written
	members []member
}

// member is an entry of a list or, with a name, of a map.
type member struct {
	name  string
	value Value
}

// Kind is the JSON type.
func (v Value) Kind() Kind { return v.kind }

// Text is the content of a string, or a number exactly as it was written, so that no digit is lost; "" for other kinds.
func (v Value) Text() string {
	if v.kind != String && v.kind != Number {
		return ""
	}
	return v.text
}

// Bool is true for the JSON value true alone.
func (v Value) Bool() bool { return v.kind == Bool && v.text == "true" }

// Len is the number of entries of a list or map, 0 for other kinds.
func (v Value) Len() int { return len(v.members) }

// At gives entry i of a list or map in the order of the token; the name is "" in a list. It panics as indexing does.
func (v Value) At(i int) (name string, value Value) {
	m := &v.members[i]
	return m.name, m.value
}

// Get gives the member of a map by its exact name.
func (v Value) Get(name string) (value Value, ok bool) {
	if v.kind == Map {
		for i := range v.members {
			if m := &v.members[i]; m.name == name {
				return m.value, true
			}
		}
	}
	return Value{}, false
}
