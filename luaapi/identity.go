package luaapi

import (
	"slices"
	"strings"

	"github.com/moongate/moongate/core"
)

// identity knows which headers tell an upstream who the caller is, and which scripts may set each of them.
type identity struct {
	names  []string // as scripts wrote them
	folded []string
	owner  [][]*script
}

// add notes that a script claims a header.
func (d *identity) add(name string, s *script) {
	key := foldName(name)
	i := slices.Index(d.folded, key)
	if i < 0 {
		i = len(d.names)
		d.names, d.folded, d.owner = append(d.names, name), append(d.folded, key), append(d.owner, nil)
	}
	if !slices.Contains(d.owner[i], s) {
		d.owner[i] = append(d.owner[i], s)
	}
}

// allows tells whether a filter may set a header. Names compare as CGI makes variables of them: X_User-Id is X-User-Id.
func (d *identity) allows(f *filter, name string) bool {
	i := d.find(name)
	return i < 0 || slices.Contains(d.owner[i], f.script)
}

func (d *identity) find(name string) int {
next:
	for i, key := range d.folded {
		if len(key) != len(name) {
			continue
		}
		for j := range len(key) {
			if key[j] != foldByte(name[j]) {
				continue next
			}
		}
		return i
	}
	return -1
}

// owners names the scripts that may set a header.
func (d *identity) owners(name string) string {
	var files []string
	for _, s := range d.owner[d.find(name)] {
		files = append(files, s.file)
	}
	return strings.Join(files, ", ")
}

func foldName(name string) string {
	b := []byte(name)
	for i := range b {
		b[i] = foldByte(b[i])
	}
	return string(b)
}

func foldByte(c byte) byte {
	switch {
	case c == '_':
		return '-'
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return c
}

// validHeaderName tells whether a script may claim a header of that name.
func validHeaderName(name string) bool { return core.IsToken(core.Bytes(name)) }
