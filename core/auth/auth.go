// Package auth answers who calls: it checks proofs of identity and tells what they prove.
//
// Every kind of proof has a [Verifier]: bearer tokens ([JWT]), API keys, passwords, signed requests, and what others are asked about.
// A [Policy] joins several. A verifier tells an [Identity], or refuses with a [Refusal] that knows its status and its challenges.
//
//	verifier, err := auth.NewJWT(auth.JWTOptions{Secret: secret, Issuer: []string{"https://id.example.com"}})
//	token, err := verifier.Verify(text)
//	if err != nil { // errors.Is(err, auth.ErrExpired); err.Error() is fit for the client
//		reason := auth.Reason(err) // and this for the log
//	}
//	user, _ := token.Claims.Get("sub")
//
// What must be asked over a network is asked within [Waiter.Wait] alone, so that the caller knows when it waits; a [Registry] keeps
// verifiers over reloads and fetches keys in the background. A proof never chooses how it is verified.
package auth

import (
	"context"
	"errors"

	"github.com/moongate/moongate/core"
)

// The kinds of refusals. Their texts are fit for the client; they tell nothing about keys or claims.
var (
	// ErrMissing: there is no proof of this kind.
	ErrMissing = errors.New("missing bearer token")
	// ErrExpired: the proof is genuine and would be valid, had its time not passed.
	ErrExpired = errors.New("token expired")
	// ErrInvalid: the proof is wrong.
	ErrInvalid = errors.New("token invalid")
	// ErrForbidden: the proof is good, and not good enough for this.
	ErrForbidden = errors.New("not allowed")
	// ErrUnavailable: nobody can tell now.
	ErrUnavailable = errors.New("temporarily unavailable")
)

// Verifier checks one kind of proof, or several of them. It is safe for concurrent use.
type Verifier interface {
	// Verify tells who sent a request. An error is a *Refusal, or that for which the request's body could not be read. What it needs to
	// wait for it waits for within w.Wait; w is not nil. Nothing of the request is kept.
	Verify(w Waiter, x *core.Exchange) (*Identity, error)
}

// Waiter lets a verifier wait for something outside of the process, or for work that takes long.
type Waiter interface {
	// Wait calls do and returns when it has ended. The context ends when nobody needs the result any more. An error says that do was
	// not called, because too many wait already or the request may wait no longer. It may panic where the caller's world ends with the
	// client's; nothing may depend on its return.
	Wait(do func(ctx context.Context)) error
}

// Refusal is an error that is one of [ErrMissing], [ErrExpired], [ErrInvalid], [ErrForbidden] and [ErrUnavailable], with the cause for the log.
type Refusal struct {
	kind       error
	reason     string
	message    string   // for the client; "" is the kind's
	challenges []string // values of WWW-Authenticate
	answer     *Answer
}

// Answer is what another service had to say about a request, for the client to see.
type Answer struct {
	Status int
	Header core.Header
	Body   []byte
}

// Error gives the text for the client.
func (r *Refusal) Error() string {
	if r.message != "" {
		return r.message
	}
	return r.kind.Error()
}

// Unwrap gives the kind of refusal, for errors.Is.
func (r *Refusal) Unwrap() error { return r.kind }

// Reason tells what was wrong; it must not reach the client.
func (r *Refusal) Reason() string { return r.reason }

// Status is what the refusal means in HTTP: 401 for a proof that is missing or wrong, 403 for one that is not good enough, 503 when
// nobody can tell, or what another service answered.
func (r *Refusal) Status() int {
	switch {
	case r.answer != nil:
		return r.answer.Status
	case r.kind == ErrForbidden:
		return 403
	case r.kind == ErrUnavailable:
		return 503
	}
	return 401
}

// Challenges are the values of WWW-Authenticate, each for a line of its own (RFC 9110 section 11.6.1): the schemes by which the client
// could prove who it is. There may be none.
func (r *Refusal) Challenges() []string { return r.challenges }

// Answer is what another service answered and the client is to see in place of an error of the gateway's; usually nil.
func (r *Refusal) Answer() *Answer { return r.answer }

// AsRefusal gives the refusal that a verifier's error is. One of another kind, which no verifier of this package makes, counts as
// unavailable.
func AsRefusal(err error) *Refusal {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}
	return &Refusal{kind: ErrUnavailable, reason: err.Error()}
}

// Reason tells what was wrong with a proof that was refused; other errors tell it themselves.
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

func invalid(reason string) error { return &Refusal{kind: ErrInvalid, reason: reason} }

func unavailable(reason string) error { return &Refusal{kind: ErrUnavailable, reason: reason} }
