package auth

import (
	"unsafe"

	"github.com/moongate/moongate/core"
)

// TokenVerifier tells what a token's text says. A [JWT] and [Issuers] are such.
type TokenVerifier interface {
	VerifyWait(w Waiter, text string) (*Token, error)
}

// Tokens is a verifier of tokens that stand somewhere in a request.
type Tokens struct {
	verifier  TokenVerifier
	place     Place
	challenge challenge
}

// NewTokens makes a verifier of tokens. The zero place is the Authorization header with the scheme Bearer; realm is what challenges name.
func NewTokens(v TokenVerifier, place Place, realm string) (*Tokens, error) {
	if place == (Place{}) {
		place.Scheme = "Bearer"
	}
	if err := place.check(); err != nil {
		return nil, err
	}
	return &Tokens{v, place, challenge{scheme: "Bearer", realm: realm}}, nil
}

// Verify implements Verifier.
func (t *Tokens) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	text, err := t.text(&x.Request)
	if err != nil {
		return nil, t.challenge.on(err)
	}
	token, err := t.verifier.VerifyWait(w, unsafe.String(unsafe.SliceData(text), len(text))) // which keeps no view of it
	if err != nil {
		return nil, t.challenge.on(err)
	}
	if token.identity.User == "" {
		return nil, t.challenge.on(invalid("the claim that names the caller is missing or cannot"))
	}
	return &token.identity, nil
}

func (t *Tokens) text(r *core.Request) ([]byte, error) {
	text, err := t.place.find(r)
	switch {
	case err != nil:
		return nil, err
	case len(text) == 0:
		return nil, &Refusal{kind: ErrMissing, reason: "no token"}
	case !isToken68(text):
		return nil, errJunk
	}
	return text, nil
}

// challenge is one value of WWW-Authenticate (RFC 9110, section 11.6.1).
type challenge struct {
	scheme string
	realm  string
	params string // further ones, as they are written
}

func (c challenge) text() string {
	text := c.scheme
	sep := " "
	if c.realm != "" {
		text += sep + `realm="` + quoted(c.realm) + `"`
		sep = ", "
	}
	if c.params != "" {
		text += sep + c.params
	}
	return text
}

// on gives a refusal the challenge by which the client could do better. For bearer tokens it says what was wrong (RFC 6750, section 3).
func (c challenge) on(err error) error {
	r := *AsRefusal(err)
	if r.kind == ErrUnavailable {
		return &r
	}
	if c.scheme == "Bearer" {
		switch r.kind {
		case ErrInvalid, ErrExpired:
			c.params = `error="invalid_token"`
		case ErrForbidden:
			c.params = `error="insufficient_scope"`
		}
	}
	if c.scheme != "" {
		r.challenges = []string{c.text()}
	}
	return &r
}

// quoted escapes a text for a quoted-string (RFC 9110, section 5.6.4).
func quoted(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return string(out)
}

// Challenge gives a refused bearer token its challenge (RFC 6750, section 3). An error of another kind counts as unavailable.
func Challenge(err error, realm string) *Refusal {
	for _, kind := range []error{ErrMissing, ErrExpired, ErrInvalid} {
		if err == kind {
			err = &Refusal{kind: kind, reason: kind.Error()}
		}
	}
	return AsRefusal(challenge{scheme: "Bearer", realm: realm}.on(err))
}
