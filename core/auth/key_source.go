package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a key source does unless its options say otherwise.
const (
	DefaultRefresh  = 15 * time.Minute
	DefaultCooldown = 30 * time.Second
	DefaultTimeout  = 5 * time.Second
)

// KeySourceOptions say where a key set is fetched from, and when.
type KeySourceOptions struct {
	// URL is the address of a key set, http or https.
	URL string
	// Issuer is an OpenID provider whose discovery document (OpenID Connect Discovery 1.0, section 4) names the key set. It stands in
	// place of URL.
	Issuer string
	// Algorithm is the only one that keys are used with; "" is each key's own.
	Algorithm string
	// Refresh is the longest time between two fetches, 0 for DefaultRefresh; an answer's max-age may ask for less.
	Refresh time.Duration
	// Cooldown is the shortest time between two fetches that unknown kids cause, 0 for DefaultCooldown.
	Cooldown time.Duration
	// Timeout bounds one fetch, and with it how long a request waits for one; 0 for DefaultTimeout.
	Timeout time.Duration
	// Fetch gets what stands at a URL.
	Fetch Fetcher
	// Log is told when fetching begins to fail and when it works again; nil is slog.Default.
	Log *slog.Logger
}

// KeySource is a key set that is fetched and kept up to date in the background: by the age of what it has, and when a token names a key
// that it has not, at most once in a cool-down. While fetching fails it keeps the last good keys. It is safe for concurrent use.
type KeySource struct {
	o       KeySourceOptions
	set     atomic.Pointer[keySet]
	tried   chan struct{} // closed after the first fetch, whatever came of it
	ask     chan struct{} // wakes Run
	fetched atomic.Uint64
	failed  atomic.Uint64

	mu       sync.Mutex
	live     bool          // somebody runs it, or is about to
	inflight chan struct{} // closed when the fetch that runs has ended; nil: none runs
	asked    time.Time     // when an unknown kid last caused a fetch
	why      string        // the last failure; "" when the last fetch succeeded
}

// NewKeySource makes a source that has no keys yet. Nothing is fetched before Run.
func NewKeySource(o KeySourceOptions) (*KeySource, error) {
	if (o.URL == "") == (o.Issuer == "") {
		return nil, errors.New("want either the URL of a key set or an issuer that is asked for it")
	}
	if err := checkURL(cmp.Or(o.URL, o.Issuer)); err != nil {
		return nil, err
	}
	if o.Algorithm != "" && !asymmetric(o.Algorithm) {
		return nil, fmt.Errorf("algorithm %q does not go with keys that are published: want RS, PS, ES or EdDSA", o.Algorithm)
	}
	o.Refresh, o.Cooldown, o.Timeout = cmp.Or(o.Refresh, DefaultRefresh), cmp.Or(o.Cooldown, DefaultCooldown), cmp.Or(o.Timeout, DefaultTimeout)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &KeySource{o: o, tried: make(chan struct{}), ask: make(chan struct{}, 1)}, nil
}

// asymmetric tells whether an algorithm verifies with public keys.
func asymmetric(algorithm string) bool {
	for _, m := range rsaMethods {
		if m.Alg() == algorithm {
			return true
		}
	}
	for _, m := range curveMethods {
		if m.Alg() == algorithm {
			return true
		}
	}
	return algorithm == "EdDSA"
}

// Name is the URL or the issuer.
func (s *KeySource) Name() string { return cmp.Or(s.o.URL, s.o.Issuer) }

// Ready says why there are no keys, nil when there are some.
func (s *KeySource) Ready() error {
	if s.set.Load() != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("no keys of %s: %s", s.Name(), cmp.Or(s.why, "not fetched yet"))
}

// Fetches tells how many fetches succeeded and failed so far, and how many keys there are now.
func (s *KeySource) Fetches() (succeeded, failed uint64, keys int) {
	if set := s.set.Load(); set != nil {
		keys = len(set.keys)
	}
	return s.fetched.Load(), s.failed.Load(), keys
}

// Start says that Run is about to be called: from now on requests wait for the first fetch.
func (s *KeySource) Start() {
	s.mu.Lock()
	s.live = true
	s.mu.Unlock()
}

// Run fetches until the context ends.
func (s *KeySource) Run(ctx context.Context) {
	s.Start()
	defer s.stop()
	for failures := 0; ; {
		age, err := s.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := age
		if failures++; err == nil {
			failures = 0
		} else {
			wait = min(time.Second<<min(failures-1, 6), s.o.Refresh)
		}
		timer := time.NewTimer(wait + time.Duration(rand.Int64N(int64(wait)/10+1)))
		select {
		case <-ctx.Done():
		case <-s.ask:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (s *KeySource) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = false
	if s.inflight != nil {
		close(s.inflight)
		s.inflight = nil
	}
}

// fetch does one fetch, for all who wait for it, and tells how long its result is good for.
func (s *KeySource) fetch(ctx context.Context) (age time.Duration, err error) {
	s.mu.Lock()
	if s.inflight == nil {
		s.inflight = make(chan struct{})
	}
	select {
	case <-s.ask: // this fetch is what was asked for
	default:
	}
	s.mu.Unlock()
	inner, cancel := context.WithTimeout(ctx, s.o.Timeout)
	set, age, err := s.load(inner)
	cancel()
	if err == nil {
		set.adopt(s.set.Load())
		s.set.Store(set)
	}
	s.ended(ctx, err)
	return age, err
}

// ended notes how a fetch ended: one line in the log for each beginning and end of trouble.
func (s *KeySource) ended(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.why
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.failed.Add(1)
		if s.why = err.Error(); before == "" {
			s.o.Log.Warn("keys not fetched", "url", s.Name(), "error", s.why, "keys_kept", s.set.Load() != nil)
		}
	default:
		s.fetched.Add(1)
		if s.why = ""; before != "" {
			s.o.Log.Info("keys fetched again", "url", s.Name())
		}
	}
	close(s.inflight)
	s.inflight = nil
	select {
	case <-s.tried:
	default:
		close(s.tried)
	}
}

// load gets the set and tells how long it is good for.
func (s *KeySource) load(ctx context.Context) (*keySet, time.Duration, error) {
	url := s.o.URL
	if url == "" {
		var err error
		if url, err = discover(ctx, s.o.Fetch, s.o.Issuer); err != nil {
			return nil, 0, err
		}
	}
	doc, err := s.o.Fetch(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	set, faults, err := parseKeySet(doc.Body, s.o.Algorithm, false)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range faults {
		s.o.Log.Warn("key not used", "url", s.Name(), "error", f.String())
	}
	age := s.o.Refresh
	if doc.MaxAge > 0 {
		age = min(age, max(doc.MaxAge, s.o.Cooldown))
	}
	return set, age, nil
}

// discover finds an OpenID provider's key set. What the document says of itself must be what it was asked for (section 4.3).
func discover(ctx context.Context, fetch Fetcher, issuer string) (url string, err error) {
	doc, err := fetch(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	fields, err := parseMap(string(doc.Body))
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	if named, _ := fields.Get("issuer"); named.Text() != issuer {
		return "", fmt.Errorf("discovery: the document is of issuer %q", shorten(named.Text()))
	}
	uri, _ := fields.Get("jwks_uri")
	if err := checkURL(uri.Text()); err != nil {
		return "", fmt.Errorf("discovery: jwks_uri: %w", err)
	}
	if strings.HasPrefix(issuer, "https:") && !strings.HasPrefix(uri.Text(), "https:") {
		return "", errors.New("discovery: jwks_uri is not https")
	}
	return uri.Text(), nil
}

// first gives the keys, and waits for them while the first fetch runs.
func (s *KeySource) first(w Waiter) (*keySet, error) {
	if set := s.set.Load(); set != nil {
		return set, nil
	}
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	if live && w != nil {
		if err := s.await(w, s.tried); err != nil {
			return nil, err
		}
	}
	if set := s.set.Load(); set != nil {
		return set, nil
	}
	return nil, unavailable(s.Ready().Error())
}

// newer gives a set that is newer than one in which a key was sought in vain; nil when there is none and none may be fetched now.
func (s *KeySource) newer(w Waiter, had *keySet) (*keySet, error) {
	if set := s.set.Load(); set != had {
		return set, nil
	}
	fetched := s.refetch()
	if fetched == nil || w == nil {
		return nil, nil
	}
	if err := s.await(w, fetched); err != nil {
		return nil, err
	}
	if set := s.set.Load(); set != had {
		return set, nil
	}
	return nil, nil
}

// refetch joins the fetch that runs, or asks for one unless another was asked for within the cool-down.
func (s *KeySource) refetch() (fetched <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inflight != nil {
		return s.inflight
	}
	now := time.Now()
	if !s.live || !s.asked.IsZero() && now.Sub(s.asked) < s.o.Cooldown {
		return nil
	}
	s.asked = now
	s.inflight = make(chan struct{})
	select {
	case s.ask <- struct{}{}:
	default:
	}
	return s.inflight
}

// await waits until a fetch has ended, for as long as one may take.
func (s *KeySource) await(w Waiter, ended <-chan struct{}) error {
	err := w.Wait(func(ctx context.Context) {
		timer := time.NewTimer(s.o.Timeout)
		defer timer.Stop()
		select {
		case <-ended:
		case <-ctx.Done():
		case <-timer.C:
		}
	})
	if err != nil {
		return unavailable("keys are being fetched: " + err.Error())
	}
	return nil
}

// shorten keeps what others wrote to a short text for the log.
func shorten(text string) string {
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}
