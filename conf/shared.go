package conf

// SharedStore is the size of a store that scripts share by its name. Stores that are not written have DefaultSharedCapacity.
type SharedStore struct {
	Pos      Pos
	Name     string
	Capacity int64 `unit:"bytes"` // for keys, values and overheads; one entry takes at most a sixteenth
}

// DefaultSharedCapacity is what a store may hold in bytes when no [shared.NAME] says otherwise.
const DefaultSharedCapacity = 32 << 20

// Equal tells whether two stores say the same, wherever they stand.
func (s SharedStore) Equal(other SharedStore) bool { return same(s, other) }

var sharedSection = section[SharedStore]{
	size("capacity", func(s *SharedStore) *int64 { return &s.Capacity }, 1<<20, 16<<30),
}

// bindShared reads [shared.NAME].
func (b *binder) bindShared(key string, v Value, c *Config) {
	b.named(key, v, func(path, name string, t *Table) {
		s := SharedStore{Pos: t.Pos, Name: name, Capacity: DefaultSharedCapacity}
		sharedSection.bind(b, path, t, &s)
		c.Shared = append(c.Shared, s)
	})
}
