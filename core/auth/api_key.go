package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moongate/moongate/core"
)

// APIKey is one key as it is kept: its digest, and what it stands for.
type APIKey struct {
	// Hash is "sha256:" and the digest of the key in hexadecimal digits. Keys are long and random, so a plain digest is enough: nobody
	// can try them all.
	Hash string
	// User is whom the key names.
	User string
	// Tier and Rate are for limiters; "" when the key says nothing of them.
	Tier, Rate string
	// Routes are names of those that the key is good for; empty: all.
	Routes []string
	// Expires is when it ends; zero: never.
	Expires time.Time
}

// APIKeyStore finds keys that are kept elsewhere by their hash. The text is one that ParseAPIKeys reads. An error says that nobody can
// tell now.
type APIKeyStore func(ctx context.Context, hash string) (text string, found bool, err error)

// APIKeysOptions say which keys there are, and where requests carry one.
type APIKeysOptions struct {
	Keys []APIKey
	// Store is asked for keys that are not among Keys; nil: nobody is.
	Store APIKeyStore
	// Keep is how long an answer of the store is remembered, 0 for DefaultKeep.
	Keep time.Duration
	// Timeout bounds one question to the store, 0 for DefaultTimeout.
	Timeout time.Duration
	// Place is where the key stands; the zero value is the header X-Api-Key.
	Place Place
	Realm string
	Clock func() time.Time
}

// DefaultKeep is how long it is remembered what others said about a proof.
const DefaultKeep = time.Minute

// maxAPIKey is the longest key in bytes.
const maxAPIKey = 512

// APIKeys is a verifier of keys that callers carry. It is safe for concurrent use.
type APIKeys struct {
	o         APIKeysOptions
	keys      map[ID]*apiKey
	memo      *memo
	challenge challenge
}

// apiKey is a key with the identity that it proves.
type apiKey struct {
	identity Identity
	routes   []string
	expires  time.Time
}

// NewAPIKeys makes a verifier. The error says which key cannot be used, by its user, and never shows one.
func NewAPIKeys(o APIKeysOptions) (*APIKeys, error) {
	if o.Place == (Place{}) {
		o.Place.Header = "X-Api-Key"
	}
	if err := o.Place.check(); err != nil {
		return nil, err
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if len(o.Keys) == 0 && o.Store == nil {
		return nil, errors.New("no key: want at least one, or a store of them")
	}
	scheme := o.Place.Scheme
	if scheme == "" {
		scheme = "ApiKey"
	}
	v := &APIKeys{o: o, keys: map[ID]*apiKey{}, memo: newMemo(DefaultCache, o.Timeout, o.Clock), challenge: challenge{scheme: scheme, realm: o.Realm}}
	for i := range o.Keys {
		id, kept, err := o.Keys[i].keep()
		if err != nil {
			return nil, err
		}
		if v.keys[id] != nil {
			return nil, fmt.Errorf("the key of %s stands twice", o.Keys[i].User)
		}
		v.keys[id] = kept
	}
	return v, nil
}

// keep checks a key and makes its identity.
func (k *APIKey) keep() (id ID, kept *apiKey, err error) {
	if !isUser(k.User) {
		return id, nil, errors.New("a key without user, whom it names")
	}
	digits, ok := strings.CutPrefix(k.Hash, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(id) {
		return id, nil, fmt.Errorf(`the key of %s has no hash: want "sha256:" and 64 hexadecimal digits of its digest`, k.User)
	}
	claims := textMap("tier", k.Tier, "rate", k.Rate).with("routes", textList(k.Routes))
	return ID(raw), &apiKey{identity: Identity{User: k.User, Kind: "api_key", Claims: claims}, routes: slices.Clone(k.Routes), expires: k.Expires}, nil
}

// HashAPIKey is what is kept of a key.
func HashAPIKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Verify implements Verifier.
func (v *APIKeys) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	key, err := v.o.Place.find(&x.Request)
	switch {
	case err != nil:
		return nil, v.refuse(err)
	case len(key) == 0:
		return nil, v.refuse(&Refusal{kind: ErrMissing, reason: "no API key"})
	case len(key) > maxAPIKey:
		return nil, v.refuse(invalid("an API key of more than 512 bytes"))
	}
	sum := ID(sha256.Sum256(key))
	kept := v.keys[sum]
	if kept == nil && v.o.Store != nil {
		if kept, err = v.ask(w, sum); err != nil {
			return nil, v.refuse(err)
		}
	}
	if kept == nil {
		return nil, v.refuse(invalid("no such API key"))
	}
	return v.judge(kept, x)
}

func (v *APIKeys) judge(k *apiKey, x *core.Exchange) (*Identity, error) {
	if !k.expires.IsZero() && !v.o.Clock().Before(k.expires) {
		return nil, v.refuse(&Refusal{kind: ErrExpired, reason: "the API key of " + k.identity.User + " has expired"})
	}
	if len(k.routes) > 0 && (x.Route == nil || !slices.Contains(k.routes, x.Route.Name)) {
		return nil, v.refuse(&Refusal{kind: ErrForbidden, reason: "the API key of " + k.identity.User + " is not for this route"})
	}
	return &k.identity, nil
}

// refuse words a refusal for clients that carry API keys.
func (v *APIKeys) refuse(err error) error {
	r := AsRefusal(v.challenge.on(err))
	r.message = map[error]string{ErrMissing: "missing API key", ErrInvalid: "API key invalid", ErrExpired: "API key expired"}[r.kind]
	return r
}

// ask asks the store, once for all who ask for the same key.
func (v *APIKeys) ask(w Waiter, sum ID) (*apiKey, error) {
	found, err := v.memo.find(w, sum, func(ctx context.Context) outcome {
		until := v.o.Clock().Add(v.o.Keep)
		text, found, err := v.o.Store(ctx, "sha256:"+hex.EncodeToString(sum[:]))
		switch {
		case err != nil:
			return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "store of API keys: " + err.Error()}}
		case !found:
			return outcome{refusal: &Refusal{kind: ErrInvalid, reason: "no such API key"}, until: until}
		}
		list, err := ParseAPIKeys(text)
		if err != nil || len(list) != 1 {
			return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: fmt.Sprintf("the store holds something else than one API key: %v", err)}}
		}
		list[0].Hash = "sha256:" + hex.EncodeToString(sum[:])
		_, kept, err := list[0].keep()
		if err != nil {
			return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "store of API keys: " + err.Error()}}
		}
		return outcome{identity: &kept.identity, proof: kept, until: until}
	})
	if err != nil {
		return nil, err
	}
	return found.proof.(*apiKey), nil
}
