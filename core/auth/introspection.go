package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/moongate/moongate/core"
)

// IntrospectionOptions say who is asked about a token, and which answers are accepted.
type IntrospectionOptions struct {
	// URL is the introspection endpoint (RFC 7662).
	URL string
	// ClientID and ClientSecret are the gateway's own credentials there; they go in a Basic header, or with Post in the form.
	ClientID, ClientSecret string
	Post                   bool
	// Issuer and Audience list accepted values of iss and aud, as for JWTs; empty: any.
	Issuer, Audience []string
	// Rules are conditions on the answer's members.
	Rules []Rule
	// User is the member that names the caller; "" is the first that is there of sub, username and client_id.
	User string
	// Keep is the longest time that an answer is remembered, never past exp: 0 for DefaultKeep, below 0 not at all.
	Keep time.Duration
	// Timeout bounds one question; 0 is DefaultTimeout.
	Timeout time.Duration
	Place   Place // zero: Authorization with the scheme Bearer
	Realm   string
	Client  *http.Client
	Clock   func() time.Time
}

// Introspection is a verifier of tokens that only their issuer understands. It is safe for concurrent use. Answers are remembered by a
// digest of the token; for many requests with the same token the issuer is asked once.
type Introspection struct {
	o         IntrospectionOptions
	memo      *memo
	digest    *digester
	challenge challenge
}

// NewIntrospection makes a verifier.
func NewIntrospection(o IntrospectionOptions) (*Introspection, error) {
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	if o.Place == (Place{}) {
		o.Place.Scheme = "Bearer"
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
	return &Introspection{o, newMemo(DefaultCache, o.Timeout, o.Clock), newDigester(), challenge{scheme: "Bearer", realm: o.Realm}}, nil
}

// Verify implements Verifier.
func (v *Introspection) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	text, err := v.o.Place.find(&x.Request)
	switch {
	case err != nil:
		return nil, v.challenge.on(err)
	case len(text) == 0:
		return nil, v.challenge.on(&Refusal{kind: ErrMissing, reason: "no token"})
	case len(text) > MaxToken || !isToken68(text):
		return nil, v.challenge.on(errJunk)
	}
	token := string(text)
	found, err := v.memo.find(w, v.digest.of(text), func(ctx context.Context) outcome { return v.ask(ctx, token) })
	if err != nil {
		return nil, v.challenge.on(err)
	}
	return found.identity, nil
}

func (v *Introspection) ask(ctx context.Context, token string) outcome {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	if v.o.Post {
		form.Set("client_id", v.o.ClientID)
		form.Set("client_secret", v.o.ClientSecret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.o.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: err.Error()}}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", userAgent)
	if !v.o.Post && v.o.ClientID != "" { // RFC 6749, section 2.3.1: both are form-encoded first
		r.SetBasicAuth(url.QueryEscape(v.o.ClientID), url.QueryEscape(v.o.ClientSecret))
	}
	answer, err := v.o.Client.Do(r)
	if err != nil {
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "introspection: " + err.Error()}}
	}
	defer answer.Body.Close()
	body, err := readAll(answer)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d", v.o.URL, answer.StatusCode)
	}
	if err != nil {
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "introspection: " + err.Error()}}
	}
	return v.judge(string(body))
}

// judge reads an answer (RFC 7662, section 2.2).
func (v *Introspection) judge(body string) outcome {
	claims, err := parseMap(body)
	if err != nil {
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "introspection: the answer is " + err.Error()}}
	}
	now := v.o.Clock()
	until := now.Add(v.o.Keep)
	if active, _ := claims.Get("active"); !active.Bool() {
		return outcome{refusal: &Refusal{kind: ErrInvalid, reason: "the token is not active"}, until: until}
	}
	rules := &JWT{claims: JWTOptions{Issuer: v.o.Issuer, Audience: v.o.Audience, User: "sub"}}
	t := &Token{Claims: claims}
	if err := rules.checkClaims(t); err != nil {
		return outcome{refusal: AsRefusal(err), until: until}
	}
	if err := t.check(now.UnixNano()); err != nil {
		return outcome{refusal: AsRefusal(err), until: until}
	}
	if at, ok := t.Expires(); ok && at.Before(until) {
		until = at
	}
	if refusal := checkRules(v.o.Rules, claims); refusal != nil {
		return outcome{refusal: refusal, until: until}
	}
	user, err := v.user(claims)
	if err != nil {
		return outcome{refusal: &Refusal{kind: ErrInvalid, reason: err.Error()}, until: until}
	}
	return outcome{identity: &Identity{User: user, Kind: "introspection", Claims: claims}, until: until}
}

func (v *Introspection) user(claims Value) (string, error) {
	names := []string{"sub", "username", "client_id"}
	if v.o.User != "" {
		names = []string{v.o.User}
	}
	for _, name := range names {
		value, ok := claims.Find(name)
		if !ok {
			continue
		}
		if text, plain := value.plain(); plain && isUser(text) {
			return text, nil
		}
		return "", fmt.Errorf("%s cannot name the caller", name)
	}
	return "", errors.New("the answer names nobody")
}
