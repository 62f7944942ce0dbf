package auth

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxToken is the longest token in bytes that a verifier looks at.
	MaxToken = 8 << 10
	// DefaultCache is the number of verified tokens that a verifier remembers unless its options say otherwise.
	DefaultCache = 4096
)

// JWTOptions say which tokens a verifier accepts. One of Secret, PublicKey, KeySet and Keys is needed; the rest may stay zero.
type JWTOptions struct {
	// Secret is the shared key of HS256 (the default), HS384 or HS512: at least 32, 48 or 64 bytes.
	Secret []byte
	// PublicKey is a PEM block: PUBLIC KEY, RSA PUBLIC KEY (at least 2048 bits) or CERTIFICATE, whose dates do not matter.
	PublicKey []byte
	// KeySet is a JSON Web Key Set (RFC 7517). Each key verifies with its own algorithm alone: the one that it names, or else
	// Algorithm, or else the first that goes with its kind.
	KeySet []byte
	// Keys is a key set that is fetched, under the same rules. Shared secrets in it are not used.
	Keys *KeySource
	// Algorithm is the only one accepted, whatever a token's head says. "" is HS256 for a secret, RS256 for an RSA key, and
	// else the one that goes with the key: ES256, ES384, ES512, EdDSA; of a key set every key's own.
	Algorithm string
	// Issuer lists whose tokens are accepted; empty: anybody's.
	Issuer []string
	// Audience lists names one of which a token must be made for; empty: any.
	Audience []string
	// Required lists claims that a token must have, not null.
	Required []string
	// Rules are conditions on the claims. A genuine token that does not fulfil them is an ErrForbidden.
	Rules []Rule
	// Revoked tells whether the token of an id (jti) was taken back; nil: none is. It is asked each time and must not wait.
	Revoked func(id string) bool
	// User is the claim, or the path to it, that names the caller; "" is sub.
	User string
	// Leeway is how far clocks may differ; it applies to exp, nbf and iat alike.
	Leeway time.Duration
	// Cache is the number of verified tokens remembered, 0 for DefaultCache; below 0 none are.
	Cache int
	// Clock gives the time; nil is time.Now.
	Clock func() time.Time
}

// JWT verifies JSON Web Tokens in compact form (RFC 7519, 7515) under one key or one set of keys. It is safe for concurrent use. Verified
// tokens are remembered by their text, each until it expires or its key is taken away, as long as the verifier lives.
type JWT struct {
	key    *key    // the one there is, whatever a token's kid says; nil: a set
	keys   *keySet // fixed
	source *KeySource
	claims JWTOptions
	clock  func() time.Time
	cache  *cache               // nil: none
	head   atomic.Pointer[head] // the last head that was accepted: an issuer's tokens share it
}

// NewJWT makes a verifier. The error says which option is impossible and what would be right; it never contains the key.
func NewJWT(o JWTOptions) (*JWT, error) {
	v := &JWT{claims: o, clock: o.Clock, source: o.Keys}
	if err := v.setKeys(o); err != nil {
		return nil, err
	}
	if o.Leeway < 0 {
		return nil, fmt.Errorf("leeway %s: want 0 or more", o.Leeway)
	}
	if v.clock == nil {
		v.clock = time.Now
	}
	if o.User == "" {
		v.claims.User = "sub"
	}
	if o.Cache == 0 {
		o.Cache = DefaultCache
	}
	if o.Cache > 0 {
		v.cache = newCache(o.Cache)
	}
	v.claims.Secret, v.claims.PublicKey, v.claims.KeySet = nil, nil, nil
	return v, nil
}

func (v *JWT) setKeys(o JWTOptions) (err error) {
	ways := 0
	for _, given := range []bool{o.Secret != nil, o.PublicKey != nil, o.KeySet != nil, o.Keys != nil} {
		if given {
			ways++
		}
	}
	switch {
	case o.Secret != nil && o.PublicKey != nil && ways == 2:
		return errors.New("both a secret and a public key: want one of them")
	case ways > 1:
		return errors.New("more than one of a secret, a public key, a key set and its URL: want one of them")
	case o.PublicKey != nil:
		v.key, err = publicKey(o.Algorithm, o.PublicKey)
	case o.KeySet != nil:
		var faults []keyFault
		if v.keys, faults, err = parseKeySet(o.KeySet, o.Algorithm, true); err == nil && len(faults) > 0 {
			err = errors.New(faults[0].String())
		}
		if err != nil {
			err = fmt.Errorf("jwks: %w", err)
		}
	case o.Keys == nil:
		v.key, err = secretKey(o.Algorithm, o.Secret)
	}
	return err
}

// Algorithm is the one algorithm that the verifier accepts; "" when its keys have each their own.
func (v *JWT) Algorithm() string {
	if v.key == nil {
		return v.claims.Algorithm
	}
	return v.key.method.Alg()
}

// Verify tells what a token says, or why it is refused: the error is a *Refusal. The text is not kept: it may be a view of a
// buffer that is reused after the call. A token seen before costs a look-up and no allocation. It never waits: where keys would have
// to be fetched first, the token is refused.
func (v *JWT) Verify(text string) (*Token, error) { return v.VerifyWait(nil, text) }

// VerifyWait is Verify that waits, within w, for keys that are on their way: the first ones, or those that a token with an unknown kid
// needs. w may be nil.
func (v *JWT) VerifyWait(w Waiter, text string) (*Token, error) {
	if text == "" {
		return nil, &Refusal{kind: ErrMissing, reason: "no token"}
	}
	if len(text) > MaxToken {
		return nil, invalid("longer than 8 KiB")
	}
	if v.cache == nil {
		t, err := v.verify(w, text)
		if err != nil {
			return nil, err
		}
		return v.judge(t, v.clock().UnixNano())
	}
	hash := v.cache.hash(text)
	if t := v.cache.get(hash, text); t != nil && !t.key.gone.Load() {
		return v.judge(t, v.clock().UnixNano())
	}
	t, err := v.verify(w, text)
	if err != nil {
		return nil, err
	}
	now := v.clock().UnixNano()
	if err := t.check(now); err == nil {
		t.text, t.hash = strings.Clone(text), hash
		t = v.cache.put(t, now)
	}
	return v.judge(t, now)
}

// judge says whether a genuine token is accepted now.
func (v *JWT) judge(t *Token, now int64) (*Token, error) {
	if err := t.check(now); err != nil {
		return nil, err
	}
	if v.claims.Revoked != nil && t.id != "" && v.claims.Revoked(t.id) {
		return nil, errRevoked
	}
	if t.denied != nil {
		return nil, t.denied
	}
	return t, nil
}

var errRevoked = &Refusal{kind: ErrInvalid, reason: "jti was revoked"}

// verify checks a token part by part; nothing of the claims is looked at before the signature holds.
func (v *JWT) verify(w Waiter, text string) (*Token, error) {
	first, last := strings.IndexByte(text, '.'), strings.LastIndexByte(text, '.')
	if first < 0 || first == last || strings.IndexByte(text[first+1:last], '.') >= 0 {
		return nil, invalid("not three parts")
	}
	scratch := buffers.Get().(*[]byte)
	defer buffers.Put(scratch)
	h, err := v.parseHead(text[:first], *scratch)
	if err != nil {
		return nil, err
	}
	signature, ok := decode((*scratch)[:0], text[last+1:])
	if !ok {
		return nil, invalid("signature is not base64url")
	}
	k, err := v.find(w, h, text[:last], signature)
	if err != nil {
		return nil, err
	}
	v.head.Store(h)
	payload, ok := decode((*scratch)[:0], text[first+1:last])
	if !ok {
		return nil, invalid("claims are not base64url")
	}
	claims, err := parseMap(string(payload))
	if err != nil {
		return nil, invalid("claims: " + err.Error())
	}
	t := &Token{Claims: claims, key: k, by: v}
	if err := v.checkClaims(t); err != nil {
		return nil, err
	}
	t.denied = checkRules(v.claims.Rules, claims)
	return t, nil
}

// buffers hold decoded parts while a token is verified.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, MaxToken)
	return &b
}}
