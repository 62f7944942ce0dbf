package luaapi

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/moongate/moongate/conf"
)

// origin is what a filter's functions are made of: those of equal origins do the same, in whichever generation.
type origin struct {
	source string
	libs   [sha256.Size]byte // digest of all libraries
	table  *conf.Table       // the settings
}

func (o origin) equal(p origin) bool {
	return o.source == p.source && o.libs == p.libs && o.table.Equal(p.table)
}

// libsDigest is that of the libraries of a configuration.
func libsDigest(lib map[string]conf.Script) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(lib)) {
		h.Write([]byte(name + "\x00" + lib[name].Source + "\x00"))
	}
	h.Sum(sum[:0])
	return sum
}
