package auth

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

const (
	// MaxToken is the longest token in bytes that a verifier looks at.
	MaxToken = 8 << 10
	// DefaultCache is the number of verified tokens that a verifier remembers unless its options say otherwise.
	DefaultCache = 4096
)

// JWTOptions say which tokens a verifier accepts. One of Secret and PublicKey is needed; the rest may stay zero.
type JWTOptions struct {
	// Secret is the shared key of HS256 (the default), HS384 or HS512: at least 32, 48 or 64 bytes.
	Secret []byte
	// PublicKey is a PEM block: PUBLIC KEY, RSA PUBLIC KEY (at least 2048 bits) or CERTIFICATE, whose dates do not matter.
	PublicKey []byte
	// Algorithm is the only one accepted, whatever a token's head says. "" is HS256 for a secret, RS256 for an RSA key, and
	// else the one that goes with the key: ES256, ES384, ES512, EdDSA.
	Algorithm string
	// Issuer lists whose tokens are accepted; empty: anybody's.
	Issuer []string
	// Audience lists names one of which a token must be made for; empty: any.
	Audience []string
	// Required lists claims that a token must have, not null.
	Required []string
	// Leeway is how far clocks may differ; it applies to exp, nbf and iat alike.
	Leeway time.Duration
	// Cache is the number of verified tokens remembered, 0 for DefaultCache; below 0 none are.
	Cache int
	// Clock gives the time; nil is time.Now.
	Clock func() time.Time
}

// JWT verifies JSON Web Tokens in compact form (RFC 7519, 7515) under one key. It is safe for concurrent use. Verified tokens
// are remembered by their text, each until it expires, as long as the verifier lives.
type JWT struct {
	key    key
	claims JWTOptions
	clock  func() time.Time
	cache  *cache                 // nil: none
	head   atomic.Pointer[string] // the last head that was accepted: an issuer's tokens share it
}

// NewJWT makes a verifier. The error says which option is impossible and what would be right; it never contains the key.
func NewJWT(o JWTOptions) (*JWT, error) {
	v := &JWT{claims: o, clock: o.Clock}
	var err error
	switch {
	case o.Secret != nil && o.PublicKey != nil:
		err = errors.New("both a secret and a public key: want one of them")
	case o.PublicKey != nil:
		v.key, err = publicKey(o.Algorithm, o.PublicKey)
	default:
		v.key, err = secretKey(o.Algorithm, o.Secret)
	}
	if err != nil {
		return nil, err
	}
	if o.Leeway < 0 {
		return nil, fmt.Errorf("leeway %s: want 0 or more", o.Leeway)
	}
	if v.clock == nil {
		v.clock = time.Now
	}
	if o.Cache == 0 {
		o.Cache = DefaultCache
	}
	if o.Cache > 0 {
		v.cache = newCache(o.Cache)
	}
	v.claims.Secret, v.claims.PublicKey = nil, nil
	return v, nil
}

// Algorithm is the one algorithm that the verifier accepts.
func (v *JWT) Algorithm() string { return v.key.method.Alg() }

// Verify tells what a token says, or why it is refused: the error is a *Refusal. The text is not kept: it may be a view of a
// buffer that is reused after the call. A token seen before costs a look-up and no allocation.
func (v *JWT) Verify(text string) (*Token, error) {
	if text == "" {
		return nil, &Refusal{ErrMissing, "no token"}
	}
	if len(text) > MaxToken {
		return nil, invalid("longer than 8 KiB")
	}
	now := v.clock().UnixNano()
	if v.cache == nil {
		return v.verify(text, now)
	}
	hash := v.cache.hash(text)
	if t := v.cache.get(hash, text); t != nil {
		if err := t.check(now); err != nil {
			return nil, err
		}
		return t, nil
	}
	t, err := v.verify(text, now)
	if err != nil {
		return nil, err
	}
	t.text, t.hash = strings.Clone(text), hash
	return v.cache.put(t, now), nil
}

// verify checks a token part by part; nothing of the claims is looked at before the signature holds.
func (v *JWT) verify(text string, now int64) (*Token, error) {
	first, last := strings.IndexByte(text, '.'), strings.LastIndexByte(text, '.')
	if first < 0 || first == last || strings.IndexByte(text[first+1:last], '.') >= 0 {
		return nil, invalid("not three parts")
	}
	scratch := buffers.Get().(*[]byte)
	defer buffers.Put(scratch)
	if err := v.checkHead(text[:first], *scratch); err != nil {
		return nil, err
	}
	signature, ok := decode((*scratch)[:0], text[last+1:])
	if !ok {
		return nil, invalid("signature is not base64url")
	}
	if !v.key.verify(text[:last], signature) {
		return nil, invalid("signature does not match")
	}
	payload, ok := decode((*scratch)[:0], text[first+1:last])
	if !ok {
		return nil, invalid("claims are not base64url")
	}
	claims, err := parseMap(string(payload))
	if err != nil {
		return nil, invalid("claims: " + err.Error())
	}
	t := &Token{Claims: claims}
	if err := v.checkClaims(t); err != nil {
		return nil, err
	}
	if err := t.check(now); err != nil {
		return nil, err
	}
	return t, nil
}

// buffers hold decoded parts while a token is verified.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, MaxToken)
	return &b
}}

// checkHead checks a token's head (RFC 7515, section 4.1). What it says about keys is never followed.
func (v *JWT) checkHead(part string, scratch []byte) error {
	if known := v.head.Load(); known != nil && *known == part {
		return nil
	}
	text, ok := decode(scratch[:0], part)
	if !ok {
		return invalid("head is not base64url")
	}
	head, err := parseMap(string(text))
	if err != nil {
		return invalid("head: " + err.Error())
	}
	alg, _ := head.Get("alg")
	if alg.Kind() != String || alg.Text() != v.key.method.Alg() {
		return invalid("head: alg is not " + v.key.method.Alg())
	}
	for _, name := range []string{"typ", "cty", "kid"} {
		if value, ok := head.Get(name); ok && value.Kind() != String {
			return invalid("head: " + name + " is not a string")
		}
	}
	if _, ok := head.Get("crit"); ok { // section 4.1.11: no extension is known here
		return invalid("head: crit names extensions")
	}
	if b64, ok := head.Get("b64"); ok && !b64.Bool() { // RFC 7797
		return invalid("head: b64 is not true")
	}
	part = strings.Clone(part)
	v.head.Store(&part)
	return nil
}

// checkClaims checks the registered claims (RFC 7519, section 4.1) and sets the token's times.
func (v *JWT) checkClaims(t *Token) error {
	for _, name := range []string{"iss", "sub", "jti"} {
		value, ok := t.Claims.Get(name)
		switch {
		case !ok:
		case value.Kind() != String:
			return invalid(name + " is not a string")
		case value.Text() == "" || !core.IsValue(core.Bytes(value.Text())):
			return invalid(name + " is empty or has a control character") // it could name nobody, or break a header
		}
	}
	if iss, _ := t.Claims.Get("iss"); len(v.claims.Issuer) > 0 && !slices.Contains(v.claims.Issuer, iss.Text()) {
		return invalid("iss is not accepted")
	}
	if err := v.checkAudience(t.Claims); err != nil {
		return err
	}
	for _, name := range v.claims.Required {
		if value, _ := t.Claims.Get(name); value.Kind() == Null {
			return invalid(name + " is missing")
		}
	}
	return v.setTimes(t)
}

// checkAudience wants one of the configured names in aud, which is a name or a list of names.
func (v *JWT) checkAudience(claims Value) error {
	aud, present := claims.Get("aud")
	accepted := len(v.claims.Audience) == 0
	switch {
	case !present:
	case aud.Kind() == String:
		accepted = accepted || slices.Contains(v.claims.Audience, aud.Text())
	case aud.Kind() == List:
		for i := range aud.Len() {
			_, name := aud.At(i)
			if name.Kind() != String {
				return invalid("aud is not a list of strings")
			}
			accepted = accepted || slices.Contains(v.claims.Audience, name.Text())
		}
	default:
		return invalid("aud is not a string or a list")
	}
	if !accepted {
		return invalid("aud is not accepted")
	}
	return nil
}

// setTimes turns exp, nbf and iat into the time for which the token is valid.
func (v *JWT) setTimes(t *Token) error {
	t.from, t.until = math.MinInt64, math.MaxInt64
	for _, name := range []string{"exp", "nbf", "iat"} {
		value, ok := t.Claims.Get(name)
		if !ok {
			continue
		}
		if value.Kind() != Number {
			return invalid(name + " is not a number")
		}
		if at := unixNano(value.Text()); name == "exp" {
			t.until = later(at, v.claims.Leeway)
		} else {
			t.from = max(t.from, later(at, -v.claims.Leeway))
		}
	}
	return nil
}
