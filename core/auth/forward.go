package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/moongate/moongate/core"
)

// ForwardOptions say which service decides about requests, and what goes there and comes back.
type ForwardOptions struct {
	// URL is asked with GET; from 200 to 299 it lets the request pass, from 300 to 499 its answer is the client's, and everything else
	// means that nobody can tell.
	URL string
	// Send lists headers of the request that go there; nil: Authorization and Cookie.
	Send []string
	// Take lists headers of a good answer that become claims, under their names in lower case.
	Take []string
	// User is the header of a good answer that names the caller; "" is X-Auth-User.
	User string
	// Optional tells that an answer without that header passes too, for callers without a name.
	Optional bool
	// Keep is how long a good answer is remembered for the same method, host, target and sent headers; 0: not at all.
	Keep time.Duration
	// Timeout bounds one question; 0 is DefaultTimeout.
	Timeout time.Duration
	Client  *http.Client
	Clock   func() time.Time
}

// Forward is a verifier that asks another service about each request. It is safe for concurrent use.
type Forward struct {
	o      ForwardOptions
	memo   *memo
	digest *digester
}

// maxForwarded is the most of a refusing answer's body that a client gets, in bytes.
const maxForwarded = 64 << 10

// forwardedHeaders are those of a refusing answer that the client gets.
var forwardedHeaders = []string{"Content-Type", "Location", "WWW-Authenticate", "Set-Cookie", "Retry-After", "Cache-Control"}

// NewForward makes a verifier.
func NewForward(o ForwardOptions) (*Forward, error) {
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	if o.Send == nil {
		o.Send = []string{"Authorization", "Cookie"}
	}
	if o.User == "" {
		o.User = "X-Auth-User"
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	for _, name := range append(append([]string{o.User}, o.Send...), o.Take...) {
		if !core.IsToken(core.Bytes(name)) {
			return nil, fmt.Errorf("%q is no header name", shorten(name))
		}
	}
	most := DefaultCache
	if o.Keep <= 0 {
		most = 0
	}
	return &Forward{o, newMemo(most, o.Timeout, o.Clock), newDigester()}, nil
}

// Verify implements Verifier.
func (v *Forward) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	question := v.question(x)
	if v.o.Keep > 0 {
		found, err := v.memo.find(w, v.id(question), func(ctx context.Context) outcome { return v.ask(ctx, question) })
		if err != nil {
			return nil, err
		}
		return found.identity, nil
	}
	var o outcome
	err := w.Wait(func(ctx context.Context) {
		inner, cancel := context.WithTimeout(ctx, v.o.Timeout)
		defer cancel()
		o = v.ask(inner, question)
	})
	if err != nil {
		return nil, unavailable(err.Error())
	}
	if o.refusal != nil {
		return nil, o.refusal
	}
	return o.identity, nil
}

// question is the header that is asked with. What stands in it is copied: others may wait for the answer.
func (v *Forward) question(x *core.Exchange) http.Header {
	r := &x.Request
	h := http.Header{"User-Agent": {userAgent}}
	for _, name := range v.o.Send {
		if value := joined(&r.Header, name); value != "" {
			h.Set(name, value)
		}
	}
	uri := string(r.RawPath)
	if r.HasQuery {
		uri += "?" + string(r.RawQuery)
	}
	h.Set("X-Forwarded-Method", r.Method)
	h.Set("X-Forwarded-Proto", r.Scheme)
	h.Set("X-Forwarded-Host", string(r.Host))
	h.Set("X-Forwarded-Uri", uri)
	if r.ClientIP.IsValid() {
		h.Set("X-Forwarded-For", r.ClientIP.String())
	}
	if len(x.RequestID) > 0 {
		h.Set("X-Request-Id", string(x.RequestID))
	}
	return h
}

// id tells questions apart; the request's id is none of it.
func (v *Forward) id(question http.Header) ID {
	var parts [][]byte
	for _, name := range append([]string{"X-Forwarded-Method", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Uri", "X-Forwarded-For"}, v.o.Send...) {
		parts = append(parts, []byte(question.Get(name)))
	}
	return v.digest.of(parts...)
}

func (v *Forward) ask(ctx context.Context, question http.Header) outcome {
	lost := func(reason string) outcome {
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "forward auth: " + reason}}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.o.URL, nil)
	if err != nil {
		return lost(err.Error())
	}
	r.Header = question
	answer, err := v.o.Client.Do(r)
	if err != nil {
		return lost(err.Error())
	}
	defer answer.Body.Close()
	body, err := readAll(answer)
	switch status := answer.StatusCode; {
	case err != nil:
		return lost(err.Error())
	case status >= 200 && status < 300:
		return v.passed(answer.Header)
	case status < 300 || status >= 500:
		return lost(fmt.Sprintf("%s answered %d", v.o.URL, status))
	case len(body) > maxForwarded:
		return lost("a refusal of more than 64 KiB")
	}
	return outcome{refusal: v.refused(answer, body)}
}

// passed makes the identity of a good answer.
func (v *Forward) passed(h http.Header) outcome {
	user := strings.TrimSpace(h.Get(v.o.User))
	switch {
	case user == "" && !v.o.Optional:
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "forward auth: a good answer without " + v.o.User}}
	case user != "" && !isUser(user):
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "forward auth: " + v.o.User + " cannot name the caller"}}
	}
	var pairs []string
	for _, name := range v.o.Take {
		pairs = append(pairs, strings.ToLower(name), strings.Join(h.Values(name), ", "))
	}
	return outcome{identity: &Identity{User: user, Kind: "forward", Claims: textMap(pairs...)}, until: v.o.Clock().Add(v.o.Keep)}
}

// refused hands an answer on to the client.
func (v *Forward) refused(answer *http.Response, body []byte) *Refusal {
	a := &Answer{Status: answer.StatusCode, Body: body}
	for _, name := range forwardedHeaders {
		for _, value := range answer.Header.Values(name) {
			if core.IsValue(core.Bytes(value)) {
				a.Header.Add(name, value)
			}
		}
	}
	r := &Refusal{kind: ErrInvalid, reason: fmt.Sprintf("forward auth: %s answered %d", v.o.URL, a.Status), answer: a}
	if a.Status == http.StatusForbidden {
		r.kind = ErrForbidden
	}
	return r
}
