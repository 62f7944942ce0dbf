package core

// Vars are the values that filters leave for each other on one exchange. Scripts reach them through ctx. Values are plain and
// immutable: whoever stores a table stores a frozen copy.
type Vars struct {
	list []variable
}

type variable struct {
	key   string
	value any
}

// Get is the value under key, nil when there is none.
func (v *Vars) Get(key string) any {
	for i := range v.list {
		if v.list[i].key == key {
			return v.list[i].value
		}
	}
	return nil
}

// Set stores value under key; nil takes the key away. The key is kept: it must not lie in a connection's buffer.
func (v *Vars) Set(key string, value any) {
	for i := range v.list {
		if v.list[i].key == key {
			if value == nil {
				v.list = append(v.list[:i], v.list[i+1:]...)
				return
			}
			v.list[i].value = value
			return
		}
	}
	if value != nil {
		v.list = append(v.list, variable{key, value})
	}
}

// Len is the number of values; At gives them in the order they were first set.
func (v *Vars) Len() int { return len(v.list) }

// At is the i-th key and value.
func (v *Vars) At(i int) (string, any) { return v.list[i].key, v.list[i].value }

func (v *Vars) reset() {
	clear(v.list[:cap(v.list)])
	v.list = v.list[:0]
}
