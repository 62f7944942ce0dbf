package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// digester makes the keyed digests by which proofs are remembered. Its key is the process's own and random, so that what is in memory
// cannot be compared with lists of known passwords.
type digester [sha256.Size]byte

func newDigester() *digester {
	var d digester
	rand.Read(d[:])
	return &d
}

// of tells apart lists of texts.
func (d *digester) of(parts ...[]byte) (id ID) {
	mac := hmac.New(sha256.New, d[:])
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write(part)
	}
	mac.Sum(id[:0])
	return id
}
