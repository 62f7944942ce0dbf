package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// passwordHash is a password as it is kept.
type passwordHash interface {
	// matches takes its time: that is what it is for.
	matches(password []byte) bool
}

// parsePassword reads a hash as htpasswd and argon2 write them.
func parsePassword(text string) (passwordHash, error) {
	switch {
	case strings.HasPrefix(text, "$2a$"), strings.HasPrefix(text, "$2b$"), strings.HasPrefix(text, "$2y$"):
		cost, err := bcrypt.Cost([]byte(text))
		if err != nil || len(text) != 60 {
			return nil, errors.New("is no bcrypt hash")
		}
		if cost > maxBcryptCost {
			return nil, fmt.Errorf("has bcrypt cost %d: at most %d, which takes a second", cost, maxBcryptCost)
		}
		return bcryptHash(text), nil
	case strings.HasPrefix(text, "$argon2id$"), strings.HasPrefix(text, "$argon2i$"):
		return parseArgon2(text)
	}
	return nil, errors.New("is neither bcrypt nor argon2: make one with `htpasswd -B`")
}

// maxBcryptCost bounds what one wrong password may cost.
const maxBcryptCost = 14

type bcryptHash string

func (h bcryptHash) matches(password []byte) bool {
	return bcrypt.CompareHashAndPassword([]byte(h), password) == nil
}

// argon2Hash is a hash in the form of the argon2 tool: $argon2id$v=19$m=65536,t=3,p=4$salt$hash.
type argon2Hash struct {
	id         bool
	memory     uint32 // KiB
	times      uint32
	lanes      uint8
	salt, hash []byte
}

// What one argon2 hash may cost at most.
const (
	maxArgon2Memory = 128 << 10 // KiB
	maxArgon2Times  = 10
	maxArgon2Lanes  = 16
)

func parseArgon2(text string) (passwordHash, error) {
	bad := errors.New("is no argon2 hash: want $argon2id$v=19$m=65536,t=3,p=4$salt$hash")
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[2] != "v=19" {
		return nil, bad
	}
	h := argon2Hash{id: parts[1] == "argon2id"}
	for _, param := range strings.Split(parts[3], ",") {
		name, digits, _ := strings.Cut(param, "=")
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return nil, bad
		}
		switch name {
		case "m":
			h.memory = uint32(n)
		case "t":
			h.times = uint32(n)
		case "p":
			h.lanes = uint8(min(n, 255))
		default:
			return nil, bad
		}
	}
	var err1, err2 error
	h.salt, err1 = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	h.hash, err2 = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	switch {
	case err1 != nil || err2 != nil || h.times < 1 || h.lanes < 1 || len(h.salt) < 8 || len(h.hash) < 16 || len(h.hash) > 128:
		return nil, bad
	case h.memory > maxArgon2Memory || h.times > maxArgon2Times || h.lanes > maxArgon2Lanes:
		return nil, fmt.Errorf("costs more than is allowed: at most m=%d, t=%d, p=%d", maxArgon2Memory, maxArgon2Times, maxArgon2Lanes)
	}
	return h, nil
}

func (h argon2Hash) matches(password []byte) bool {
	derive := argon2.Key
	if h.id {
		derive = argon2.IDKey
	}
	sum := derive(password, h.salt, h.times, h.memory, h.lanes, uint32(len(h.hash)))
	return subtle.ConstantTimeCompare(sum, h.hash) == 1
}

// parseHtpasswd reads lines of the form user:hash; empty lines and those that begin with # do not count.
func parseHtpasswd(text string) (map[string]passwordHash, error) {
	users := map[string]passwordHash{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		user, hash, ok := strings.Cut(line, ":")
		if !ok || !isUser(user) {
			return nil, fmt.Errorf("line %d is not user:hash", number)
		}
		h, err := parsePassword(hash)
		if err != nil {
			return nil, fmt.Errorf("line %d: the hash of %s %w", number, user, err)
		}
		if users[user] != nil {
			return nil, fmt.Errorf("line %d: %s stands twice", number, user)
		}
		users[user] = h
	}
	if len(users) == 0 {
		return nil, errors.New("no user: want lines of user:hash, as htpasswd -B makes them")
	}
	return users, nil
}
