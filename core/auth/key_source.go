package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
