package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
)

// HMACApp is an application that signs its requests.
type HMACApp struct {
	// ID is the application's name, which its requests carry.
	ID string
	// Secret is the key that it signs with: at least 32 bytes for SHA-256, 64 for SHA-512.
	Secret []byte
	// SHA512 tells that it signs with HMAC-SHA512 in place of HMAC-SHA256. The request never chooses.
	SHA512 bool
}

// HMACOptions say whose signatures are accepted.
type HMACOptions struct {
	Apps []HMACApp
	// Signed lists headers that a signature must cover.
	Signed []string
	// Nonces remembers which were used; nil is a store of the verifier's own.
	Nonces NonceStore
	Realm  string
	Clock  func() time.Time
}

// The window of time in which a signed request is accepted: Window on both sides, and three standard deviations of the last ten
// differences between the application's clock and ours on top, up to MaxWindow.
const (
	HMACWindow    = 300 * time.Second
	HMACMaxWindow = 600 * time.Second
	hmacSamples   = 10
)

// HMAC is a verifier of signed requests. It is safe for concurrent use. CanonicalRequest says what is signed.
type HMAC struct {
	apps   map[string]*hmacApp
	o      HMACOptions
	scheme [2]challenge
}

type hmacApp struct {
	identity Identity
	secret   []byte
	hash     func() hash.Hash
	scheme   string

	mu    sync.Mutex
	drift [hmacSamples]float64 // seconds, of the last requests that were accepted
	count int
}

// NewHMAC makes a verifier. The error says which application cannot be used and never shows a secret.
func NewHMAC(o HMACOptions) (*HMAC, error) {
	if len(o.Apps) == 0 {
		return nil, errors.New("no application: want at least one")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Nonces == nil {
		o.Nonces = NewNonces(DefaultNonces, o.Clock)
	}
	v := &HMAC{o: o, apps: map[string]*hmacApp{}}
	for i, a := range o.Apps {
		kept := &hmacApp{identity: Identity{User: a.ID, Kind: "hmac"}, secret: bytes.Clone(a.Secret), hash: sha256.New, scheme: schemeSHA256}
		if a.SHA512 {
			kept.hash, kept.scheme = sha512.New, schemeSHA512
		}
		switch size := kept.hash().Size(); {
		case !isUser(a.ID) || strings.ContainsAny(a.ID, `"\`):
			return nil, fmt.Errorf("application %d has no name that can stand in a header", i+1)
		case len(a.Secret) < size:
			return nil, fmt.Errorf("the secret of %s has %d bytes: %s wants at least %d", a.ID, len(a.Secret), kept.scheme, size)
		case v.apps[a.ID] != nil:
			return nil, fmt.Errorf("application %s stands twice", a.ID)
		}
		v.apps[a.ID] = kept
		index := 0
		if a.SHA512 {
			index = 1
		}
		v.scheme[index] = challenge{scheme: kept.scheme, realm: o.Realm}
	}
	return v, nil
}

const (
	schemeSHA256 = "HMAC-SHA256"
	schemeSHA512 = "HMAC-SHA512"
)

// Verify implements Verifier. It reads the body, up to the route's body buffer.
func (v *HMAC) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	app, err := v.verify(w, x)
	if err == nil {
		return &app.identity, nil
	}
	if _, ok := errors.AsType[*Refusal](err); !ok {
		return nil, err
	}
	r := *AsRefusal(err)
	r.message = map[error]string{ErrMissing: "signature required", ErrInvalid: "signature invalid", ErrExpired: "signature expired"}[r.kind]
	for _, c := range v.scheme {
		if c.scheme != "" && r.kind != ErrUnavailable {
			r.challenges = append(r.challenges, c.text())
		}
	}
	return nil, &r
}

func (v *HMAC) verify(w Waiter, x *core.Exchange) (*hmacApp, error) {
	s, err := signatureOf(&x.Request)
	if err != nil {
		return nil, err
	}
	app := v.apps[s.key]
	if app == nil || app.scheme != s.scheme {
		return nil, invalid("no such application, or it signs with another hash")
	}
	for _, name := range v.o.Signed {
		if !containsFold(s.headers, name) {
			return nil, invalid("the signature does not cover " + name)
		}
	}
	body, err := bodyOf(w, x)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(app.hash, app.secret)
	mac.Write(s.canonical(&x.Request, body, app.hash))
	if !hmac.Equal(mac.Sum(nil), s.signature) {
		return nil, invalid("the signature of " + s.key + " does not match")
	}
	now := v.o.Clock()
	difference := s.time.Sub(now)
	if window := app.window(); difference.Abs() > window {
		return nil, &Refusal{kind: ErrExpired, reason: fmt.Sprintf("the request of %s is %s off, more than %s", s.key, difference.Round(time.Second), window.Round(time.Second))}
	}
	// A nonce counts for as long as its time could be accepted.
	fresh, err := v.o.Nonces.Use(w, s.key, s.nonce, difference+HMACMaxWindow)
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, invalid("the nonce of " + s.key + " was used before")
	}
	app.note(difference)
	return app, nil
}

// window is how far the application's clock may be off now.
func (a *hmacApp) window() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(a.count, hmacSamples)
	if n < 2 {
		return HMACWindow
	}
	var mean, squares float64
	for _, d := range a.drift[:n] {
		mean += d / float64(n)
	}
	for _, d := range a.drift[:n] {
		squares += (d - mean) * (d - mean)
	}
	deviation := math.Sqrt(squares / float64(n))
	return min(HMACMaxWindow, HMACWindow+time.Duration(3*deviation*float64(time.Second)))
}

func (a *hmacApp) note(difference time.Duration) {
	a.mu.Lock()
	a.drift[a.count%hmacSamples] = difference.Seconds()
	a.count++
	a.mu.Unlock()
}

// bodyOf reads the whole body, which an upload may take its time for.
func bodyOf(w Waiter, x *core.Exchange) (body []byte, err error) {
	limit := int64(defaultBuffer)
	if x.Route != nil && x.Route.BodyBuffer > 0 {
		limit = x.Route.BodyBuffer
	}
	if whole, ok := x.Request.Body.Whole(); ok {
		body = whole
	} else if waiting := w.Wait(func(context.Context) { body, err = x.Request.Body.Buffer(limit) }); waiting != nil {
		return nil, unavailable(waiting.Error())
	}
	if int64(len(body)) > limit {
		return nil, core.ErrBodyTooLarge
	}
	return body, err
}

// defaultBuffer is the longest body that is read where no route says so.
const defaultBuffer = 1 << 20
