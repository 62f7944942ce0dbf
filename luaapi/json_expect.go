package luaapi

import "encoding/binary"

// expectedNames are names of members that came, each with the one that came after it: of objects with the same members, as most that come
// are, the next name is known before it is read. It only says what to look for first: what comes is the same with and without it, whatever
// texts have been read before.
type expectedNames struct {
	known [knownNames]expectedName
	index [256]uint8 // where a name is known, by its hash; another one may be there
	free  uint8      // the place of known that is given away next
	last  uint8      // the place of the name that came last
	next  uint8      // the place of the one that is expected
}

// expectedName is a member's name as it stood: from the comma before it, if there was one, to its colon.
type expectedName struct {
	text   [2]uint64 // its bytes, the first one lowest, 0 behind the end
	mask   [2]uint64 // the bits that count
	length int       // 0: none
	next   uint8     // the place of the name that came after it
}

const (
	knownNames      = 64 // how many names are known at most
	longestExpected = 16 // bytes that a known name has at most
)

// comes reports whether the name stands at the start of b.
func (e *expectedName) comes(b *[longestExpected]byte) bool {
	return binary.LittleEndian.Uint64(b[:])&e.mask[0] == e.text[0] && binary.LittleEndian.Uint64(b[8:])&e.mask[1] == e.text[1] && e.length != 0
}

// read is the end of the name that begins at i, which was not the expected one; -1 for what is none. A comma may stand before it.
func (n *expectedNames) read(in []byte, i int) int {
	start := i
	if in[i] == ',' {
		i++
	}
	end := skipName(in, i)
	if end < 0 || end-start > longestExpected || len(in)-start < longestExpected {
		return end
	}
	n.learn(in[start:], end-start)
	return end
}

// learn takes in the name in the first bytes of b as the one that comes after the last.
func (n *expectedNames) learn(b []byte, length int) {
	name := expectedName{length: length}
	for i := range name.text {
		name.mask[i] = ^uint64(0) >> (8 * max(0, 8*(i+1)-length)) // all of them are shifted out when none counts
		name.text[i] = binary.LittleEndian.Uint64(b[8*i:]) & name.mask[i]
	}
	hash := (name.text[0] ^ name.text[1]*0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15 >> 56
	at := n.index[hash]
	if known := &n.known[at]; known.text != name.text || known.length != length {
		at = n.free
		n.free = (at + 1) % knownNames
		name.next = at
		n.index[hash], n.known[at] = at, name
	}
	n.known[n.last].next = at
	n.last, n.next = at, n.known[at].next
}
