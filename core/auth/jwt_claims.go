package auth

import (
	"math"
	"slices"

	"github.com/moongate/moongate/core"
)

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
	id, _ := t.Claims.Get("jti")
	t.id = id.Text()
	user, _ := t.Claims.Find(v.claims.User)
	if name, ok := user.plain(); ok && isUser(name) {
		t.identity = Identity{User: name, Kind: "jwt", Claims: t.Claims}
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
