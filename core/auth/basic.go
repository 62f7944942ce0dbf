package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"maps"
	"runtime"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/moongate/moongate/core"
)

// BasicOptions say whose passwords are accepted.
type BasicOptions struct {
	// Users holds lines of user:hash as htpasswd -B makes them: bcrypt, or argon2 in the form of its tool.
	Users string
	Realm string
	// Keep is how long a password that was right is remembered, by its digest under a random key: 0 for DefaultKeep, below 0 not at all.
	Keep  time.Duration
	Clock func() time.Time
}

// Basic is a verifier of passwords (RFC 7617). It is safe for concurrent use. Hashing, which is slow by design, runs on as many
// goroutines at once as half the processors and waits within the Waiter.
type Basic struct {
	users     map[string]*basicUser
	decoy     passwordHash // for users that there are not
	memo      *memo
	keep      time.Duration
	digest    *digester
	gate      chan struct{}
	challenge challenge
}

type basicUser struct {
	identity Identity
	hash     passwordHash
}

// What is taken of user and password in bytes. bcrypt knows no longer passwords.
const maxPassword = 72

// hashTimeout is how long a request waits for its password to be hashed, queueing included.
const hashTimeout = 10 * time.Second

// NewBasic makes a verifier. The error says which line cannot be used and never shows a hash.
func NewBasic(o BasicOptions) (*Basic, error) {
	hashes, err := parseHtpasswd(o.Users)
	if err != nil {
		return nil, err
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	v := &Basic{users: map[string]*basicUser{}, memo: newMemo(DefaultCache, hashTimeout, o.Clock), keep: o.Keep, digest: newDigester(),
		gate: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), challenge: challenge{"Basic", o.Realm, `charset="UTF-8"`}}
	for user, hash := range hashes {
		v.users[user] = &basicUser{Identity{User: user, Kind: "basic"}, hash}
	}
	v.decoy = hashes[slices.Sorted(maps.Keys(hashes))[0]]
	return v, nil
}

// Verify implements Verifier.
func (v *Basic) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	user, password, err := passwordOf(&x.Request)
	if err != nil {
		return nil, v.refuse(err)
	}
	found, err := v.memo.find(w, v.digest.of(user, password), func(ctx context.Context) outcome { return v.hash(ctx, string(user), password) })
	if err != nil {
		return nil, v.refuse(err)
	}
	return found.identity, nil
}

// hash compares a password with what is kept of it. It takes as long for users that there are not.
func (v *Basic) hash(ctx context.Context, user string, password []byte) outcome {
	select {
	case v.gate <- struct{}{}:
		defer func() { <-v.gate }()
	case <-ctx.Done():
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "too many passwords to hash"}}
	}
	known := v.users[user]
	if known == nil {
		v.decoy.matches(password)
		return outcome{refusal: &Refusal{kind: ErrInvalid, reason: "no such user"}}
	}
	if !known.hash.matches(password) {
		return outcome{refusal: &Refusal{kind: ErrInvalid, reason: "wrong password of " + user}}
	}
	return outcome{identity: &known.identity, until: v.memo.clock().Add(v.keep)}
}

func (v *Basic) refuse(err error) error { return refusePassword(v.challenge, err) }

// refusePassword words a refusal for clients that come with a password: it never tells whether there is such a user.
func refusePassword(c challenge, err error) error {
	r := AsRefusal(c.on(err))
	r.message = map[error]string{ErrMissing: "authentication required", ErrInvalid: "wrong user or password"}[r.kind]
	return r
}

// passwordOf reads user and password out of a request (RFC 7617, section 2). They are copies.
func passwordOf(r *core.Request) (user, password []byte, err error) {
	text, err := Place{Scheme: "Basic"}.find(r)
	if err != nil {
		return nil, nil, err
	}
	if text == nil {
		return nil, nil, &Refusal{kind: ErrMissing, reason: "no Authorization header with the scheme Basic"}
	}
	both, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	user, password, ok := bytes.Cut(both, []byte{':'})
	if err != nil || !ok || bytes.ContainsAny(text, "\r\n") {
		return nil, nil, invalid("Basic credentials are not base64 of user:password")
	}
	switch {
	case len(user) == 0 || len(password) == 0:
		return nil, nil, invalid("user or password is empty")
	case len(user) > maxUser || len(password) > maxPassword:
		return nil, nil, invalid("user or password is too long")
	case !utf8.Valid(both) || !core.IsValue(both) || !isUser(string(user)):
		return nil, nil, invalid("user or password is no text")
	}
	return user, password, nil
}
