package auth

import (
	"errors"
	"fmt"
	"strings"
)

// Issuers verifies the tokens of several issuers, each under its own keys and rules. It is safe for concurrent use.
type Issuers struct {
	byName map[string]*JWT
	cache  *cache
}

// NewIssuers makes a verifier of one set of options for each issuer; each names its issuers, and no two name the same. They share one
// cache, of the size that the first one asks for.
func NewIssuers(list []JWTOptions) (*Issuers, error) {
	if len(list) == 0 {
		return nil, errors.New("no issuer: want at least one")
	}
	size := list[0].Cache
	if size == 0 {
		size = DefaultCache
	}
	s := &Issuers{byName: map[string]*JWT{}}
	if size > 0 {
		s.cache = newCache(size)
	}
	for i, o := range list {
		if len(o.Issuer) == 0 {
			return nil, fmt.Errorf("issuer %d has no name: want issuer, which its tokens say in iss", i+1)
		}
		o.Cache = -1
		v, err := NewJWT(o)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: %w", o.Issuer[0], err)
		}
		v.cache = s.cache
		for _, name := range o.Issuer {
			if s.byName[name] != nil {
				return nil, fmt.Errorf("issuer %s stands twice", name)
			}
			s.byName[name] = v
		}
	}
	return s, nil
}

// VerifyWait is JWT.VerifyWait under the rules of the issuer that the token names. The name is believed for nothing but the choice: the
// token then has to be what that issuer signs.
func (s *Issuers) VerifyWait(w Waiter, text string) (*Token, error) {
	if s.cache != nil && len(text) <= MaxToken {
		if t := s.cache.get(s.cache.hash(text), text); t != nil && !t.key.gone.Load() {
			return t.by.judge(t, t.by.clock().UnixNano())
		}
	}
	if text == "" {
		return nil, &Refusal{kind: ErrMissing, reason: "no token"}
	}
	if len(text) > MaxToken {
		return nil, invalid("longer than 8 KiB")
	}
	name, err := issuerOf(text)
	if err != nil {
		return nil, err
	}
	v := s.byName[name]
	if v == nil {
		return nil, invalid("iss is not accepted")
	}
	return v.VerifyWait(w, text)
}

// issuerOf reads iss out of a token that nobody has verified yet.
func issuerOf(text string) (string, error) {
	_, rest, _ := strings.Cut(text, ".")
	part, _, ok := strings.Cut(rest, ".")
	if !ok {
		return "", invalid("not three parts")
	}
	scratch := buffers.Get().(*[]byte)
	defer buffers.Put(scratch)
	payload, ok := decode((*scratch)[:0], part)
	if !ok {
		return "", invalid("claims are not base64url")
	}
	claims, err := parseMap(string(payload))
	if err != nil {
		return "", invalid("claims: " + err.Error())
	}
	iss, _ := claims.Get("iss")
	return strings.Clone(iss.Text()), nil
}
