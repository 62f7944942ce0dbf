// Package auth answers who calls: it checks proofs of identity and tells what they prove.
//
// A [JWT] verifies bearer tokens (RFC 7519) under one key and one algorithm, [Bearer] takes the token out of a request,
// [ClientIP] finds the client behind trusted proxies, and [Sign] makes tokens for demonstrations and tests.
//
//	verifier, err := auth.NewJWT(auth.JWTOptions{Secret: secret, Issuer: []string{"https://id.example.com"}})
//	token, err := verifier.Verify(text)
//	if err != nil { // errors.Is(err, auth.ErrExpired); err.Error() is fit for the client
//		reason := auth.Reason(err) // and this for the log
//	}
//	user, _ := token.Claims.Get("sub")
//
// The package decides nothing about access: what a refusal costs and which claim names the user is for scripts to say. It
// never lets a token choose how it is verified, and never talks to a network.
package auth

import "errors"

// The answers to a caller without a valid proof. Their texts are fit for the client; they tell nothing about keys or claims.
var (
	// ErrMissing: there is no bearer token.
	ErrMissing = errors.New("missing bearer token")
	// ErrExpired: the token is genuine and would be valid, had its time not passed.
	ErrExpired = errors.New("token expired")
	// ErrInvalid: anything else.
	ErrInvalid = errors.New("token invalid")
)

// Refusal is an error that is one of [ErrMissing], [ErrExpired] and [ErrInvalid], with the cause for the log.
type Refusal struct {
	kind   error
	reason string
}

// Error gives the text for the client.
func (r *Refusal) Error() string { return r.kind.Error() }

// Unwrap gives the kind of refusal, for errors.Is.
func (r *Refusal) Unwrap() error { return r.kind }

// Reason tells what was wrong; it must not reach the client.
func (r *Refusal) Reason() string { return r.reason }

// Reason tells what was wrong with a token that was refused; other errors tell it themselves.
func Reason(err error) string {
	var refusal *Refusal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refusal):
		return refusal.reason
	default:
		return err.Error()
	}
}

func invalid(reason string) error { return &Refusal{ErrInvalid, reason} }
