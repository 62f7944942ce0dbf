package auth_test

import (
	"context"
	"crypto/elliptic"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/core/auth"
)

// patient waits at once, and counts how often it had to.
type patient struct{ waits atomic.Int64 }

func (p *patient) Wait(do func(context.Context)) error {
	p.waits.Add(1)
	do(context.Background())
	return nil
}

// hasty never waits.
type hasty struct{}

func (hasty) Wait(func(context.Context)) error { return errors.New("too many wait") }

// provider publishes a key set in memory.
type provider struct {
	mu     sync.Mutex
	set    []byte
	err    error
	delay  time.Duration
	maxAge time.Duration
	asked  []string
}

func (p *provider) publish(set []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set, p.err = set, err
}

func (p *provider) fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func (p *provider) fetch(ctx context.Context, url string) (auth.Document, error) {
	p.mu.Lock()
	p.asked = append(p.asked, url)
	set, err, delay, age := p.set, p.err, p.delay, p.maxAge
	p.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return auth.Document{}, ctx.Err()
	}
	return auth.Document{Body: set, MaxAge: age}, err
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// inBubble runs a test with a source of the provider's keys, which runs, in virtual time.
func inBubble(t *testing.T, p *provider, o auth.KeySourceOptions, test func(t *testing.T, s *auth.KeySource, v *auth.JWT)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.URL = "https://id.example.com/jwks.json"; o.Log == nil {
			o.Log = quiet
		}
		o.Fetch = p.fetch
		s, err := auth.NewKeySource(o)
		if err != nil {
			t.Fatal(err)
		}
		v, err := auth.NewJWT(auth.JWTOptions{Keys: s})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.Start()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		test(t, s, v)
		cancel()
		<-ended
	})
}

func TestKeysAreFetchedAtStartAndRefreshed(t *testing.T) {
	a, b := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P256())
	p := &provider{delay: time.Second}
	p.publish(jwks(jwk(a, map[string]any{"kid": "a"})), nil)
	inBubble(t, p, auth.KeySourceOptions{Refresh: time.Hour}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		w, began := &patient{}, time.Now()
		old := signed(t, "ES256", a, head("ES256", "a"), `{"sub":"tom"}`)
		if _, err := v.Verify(old); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("without patience, before there are keys: %v", err)
		}
		if _, err := v.VerifyWait(hasty{}, old); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("too many wait: %v", err)
		}
		if _, err := v.VerifyWait(w, old); err != nil || time.Since(began) != time.Second || w.waits.Load() != 1 {
			t.Errorf("%v after %s and %d waits", err, time.Since(began), w.waits.Load())
		}
		p.publish(jwks(jwk(b, map[string]any{"kid": "b"})), nil)
		time.Sleep(70 * time.Minute)
		if n := p.fetches(); n != 2 {
			t.Errorf("%d fetches in 70 minutes", n)
		}
		// What was verified with a key that has been taken away counts no more, remembered or not.
		if _, err := v.VerifyWait(w, old); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("the old key is gone: %v", err)
		}
		if _, err := v.VerifyWait(w, signed(t, "ES256", b, head("ES256", "b"), `{"sub":"tom"}`)); err != nil {
			t.Error(err, auth.Reason(err))
		}
	})
}

func TestLastGoodKeysAreKept(t *testing.T) {
	k := ecKey(t, elliptic.P256())
	good := jwks(jwk(k, map[string]any{"kid": "k"}))
	text := signed(t, "ES256", k, head("ES256", "k"), `{"sub":"tom"}`)
	p := &provider{}
	p.publish(good, nil)
	var log strings.Builder
	o := auth.KeySourceOptions{Refresh: time.Minute, Timeout: 5 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))}
	inBubble(t, p, o, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		synctest.Wait()
		for _, trouble := range []struct {
			set   []byte
			err   error
			delay time.Duration
		}{
			{nil, errors.New("refused"), 0}, {[]byte("<html>sorry</html>"), nil, 0}, {nil, nil, 0}, {jwks(), nil, 0}, {good, nil, time.Hour}, {[]byte(`{"keys":[{"kty":"EC"}]}`), nil, 0},
		} {
			p.publish(trouble.set, trouble.err)
			p.mu.Lock()
			p.delay = trouble.delay
			p.mu.Unlock()
			time.Sleep(10 * time.Minute)
			if _, err := v.VerifyWait(hasty{}, text); err != nil || s.Ready() != nil {
				t.Errorf("%+v: %v, %v", trouble, err, s.Ready())
			}
		}
		p.publish(good, nil)
		p.mu.Lock()
		p.delay = 0
		p.mu.Unlock()
		time.Sleep(2 * time.Minute)
		succeeded, failed, keys := s.Fetches()
		if succeeded < 2 || failed < 6 || keys != 1 {
			t.Errorf("%d fetches, %d failed, %d keys", succeeded, failed, keys)
		}
	})
	if n := strings.Count(log.String(), "keys not fetched"); n != 1 || strings.Count(log.String(), "keys fetched again") != 1 {
		t.Errorf("an episode is one line at its begin and one at its end:\n%s", log.String())
	}
}

func TestUnreachableAtStartIsNotReady(t *testing.T) {
	k := ecKey(t, elliptic.P256())
	p := &provider{err: errors.New("connection refused")}
	text := signed(t, "ES256", k, head("ES256", "k"), `{"sub":"tom"}`)
	inBubble(t, p, auth.KeySourceOptions{}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		synctest.Wait()
		w := &patient{}
		_, err := v.VerifyWait(w, text)
		if !errors.Is(err, auth.ErrUnavailable) || auth.AsRefusal(err).Status() != 503 || err.Error() != "temporarily unavailable" {
			t.Errorf("got %v", err)
		}
		if ready := s.Ready(); ready == nil || !strings.Contains(ready.Error(), "connection refused") {
			t.Errorf("ready: %v", ready)
		}
		p.publish(jwks(jwk(k, map[string]any{"kid": "k"})), nil)
		time.Sleep(2 * time.Second) // tried again soon
		if _, err := v.VerifyWait(w, text); err != nil || s.Ready() != nil {
			t.Errorf("after recovery: %v, %v", err, s.Ready())
		}
	})
}

// TestUnknownKidsCauseOneFetchInACooldown: five hundred strangers at once delay nobody whose key is known.
func TestUnknownKidsCauseOneFetchInACooldown(t *testing.T) {
	k := ecKey(t, elliptic.P256())
	p := &provider{}
	p.publish(jwks(jwk(k, map[string]any{"kid": "k"})), nil)
	good := signed(t, "ES256", k, head("ES256", "k"), `{"sub":"tom"}`)
	inBubble(t, p, auth.KeySourceOptions{Refresh: time.Hour, Cooldown: 30 * time.Second}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		synctest.Wait()
		p.mu.Lock()
		p.delay = time.Second
		p.mu.Unlock()
		for round := range 2 {
			before := p.fetches()
			var strangers sync.WaitGroup
			for i := range 500 {
				strangers.Go(func() {
					text := b64(head("ES256", fmt.Sprint("kid", round, i))) + "." + b64(`{}`) + "." + raw64(make([]byte, 64))
					if _, err := v.VerifyWait(&patient{}, text); !errors.Is(err, auth.ErrInvalid) {
						t.Errorf("a stranger: %v", err)
					}
				})
			}
			synctest.Wait()
			began := time.Now()
			if _, err := v.VerifyWait(hasty{}, good); err != nil || time.Since(began) != 0 {
				t.Errorf("a known key: %v after %s", err, time.Since(began))
			}
			strangers.Wait()
			if n := p.fetches() - before; n != 1 {
				t.Errorf("round %d: %d fetches", round, n)
			}
			if _, err := v.VerifyWait(hasty{}, b64(head("ES256", "late"))+"."+b64(`{}`)+"."+raw64(make([]byte, 64))); !errors.Is(err, auth.ErrInvalid) {
				t.Errorf("within the cool-down a stranger is refused at once: %v", err)
			}
			time.Sleep(31 * time.Second)
		}
	})
}

// TestRotationFailsNoValidToken: keys change while callers come, with the old key still published for a while.
func TestRotationFailsNoValidToken(t *testing.T) {
	p := &provider{delay: 100 * time.Millisecond}
	old := ecKey(t, elliptic.P256())
	p.publish(jwks(jwk(old, map[string]any{"kid": "0"})), nil)
	inBubble(t, p, auth.KeySourceOptions{Refresh: time.Hour, Cooldown: time.Second}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		oldKid := "0"
		for i := 1; i <= 20; i++ {
			next, kid := ecKey(t, elliptic.P256()), fmt.Sprint(i)
			p.publish(jwks(jwk(old, map[string]any{"kid": oldKid}), jwk(next, map[string]any{"kid": kid})), nil)
			texts := []string{signed(t, "ES256", old, head("ES256", oldKid), `{"sub":"tom"}`), signed(t, "ES256", next, head("ES256", kid), `{"sub":"tom"}`)}
			var callers sync.WaitGroup
			for j := range 40 {
				callers.Go(func() {
					if _, err := v.VerifyWait(&patient{}, texts[j%2]); err != nil {
						t.Errorf("rotation %d: %v (%s)", i, err, auth.Reason(err))
					}
				})
			}
			callers.Wait()
			time.Sleep(1500 * time.Millisecond)
			old, oldKid = next, kid
		}
	})
}

// TestFetchThatBeganTooEarlyIsFollowedByAnother: a token of a key that was published while a fetch ran is not refused for it.
func TestFetchThatBeganTooEarlyIsFollowedByAnother(t *testing.T) {
	a, b := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P256())
	p := &provider{delay: time.Second}
	p.publish(jwks(jwk(a, map[string]any{"kid": "a"})), nil)
	inBubble(t, p, auth.KeySourceOptions{Refresh: time.Minute}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		time.Sleep(2 * time.Second)
		for p.fetches() < 2 {
			time.Sleep(100 * time.Millisecond) // until the second fetch is under way, with the old set
		}
		p.publish(jwks(jwk(b, map[string]any{"kid": "b"})), nil)
		if _, err := v.VerifyWait(&patient{}, signed(t, "ES256", b, head("ES256", "b"), `{}`)); err != nil {
			t.Error(err, auth.Reason(err))
		}
	})
}

func TestMaxAgeAsksForAnEarlierRefresh(t *testing.T) {
	p := &provider{maxAge: 5 * time.Minute}
	p.publish(jwks(jwk(ecKey(t, elliptic.P256()), nil)), nil)
	inBubble(t, p, auth.KeySourceOptions{Refresh: 24 * time.Hour}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		time.Sleep(time.Hour)
		if n := p.fetches(); n < 10 || n > 13 {
			t.Errorf("%d fetches in an hour", n)
		}
	})
}

func TestDiscoveryFindsTheKeySet(t *testing.T) {
	k := ecKey(t, elliptic.P256())
	var base, issuer string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /realm/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer, base+"/keys")
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) { w.Write(jwks(jwk(k, map[string]any{"kid": "k"}))) })
	server := httptest.NewServer(mux)
	defer server.Close()
	base, issuer = server.URL, server.URL+"/realm"
	client, err := auth.NewClient(auth.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []bool{false, true} {
		s, err := auth.NewKeySource(auth.KeySourceOptions{Issuer: server.URL + "/realm", Fetch: auth.NewFetcher(client), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if wrong {
			issuer = "https://somebody.else"
		}
		v, err := auth.NewJWT(auth.JWTOptions{Keys: s, Issuer: []string{server.URL + "/realm"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.Start()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		_, err = v.VerifyWait(&patient{}, signed(t, "ES256", k, head("ES256", "k"), fmt.Sprintf(`{"sub":"tom","iss":%q}`, server.URL+"/realm")))
		if wrong != errors.Is(err, auth.ErrUnavailable) || !wrong && err != nil {
			t.Errorf("wrong %v: %v (%s)", wrong, err, auth.Reason(err))
		}
		cancel()
		<-ended
	}
}

func TestFetcherWantsADocument(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/good", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/good":
			w.Header().Set("Cache-Control", "public, max-age=60")
			w.Write([]byte("{}"))
		case "/large":
			w.Write(make([]byte, 1<<20+1))
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	client, err := auth.NewClient(auth.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fetch := auth.NewFetcher(client)
	for path, want := range map[string]string{"/good": "", "/moved": "", "/round": "redirections", "/large": "1 MiB", "/broken": "answered 500"} {
		doc, err := fetch(t.Context(), server.URL+path)
		switch {
		case want == "" && (err != nil || doc.MaxAge != time.Minute || string(doc.Body) != "{}"):
			t.Errorf("%s: %+v, %v", path, doc, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestImpossibleKeySourcesAreRefused(t *testing.T) {
	for want, o := range map[string]auth.KeySourceOptions{
		"want either the URL of a key set or an issuer that is asked for it":                   {},
		`"file:///etc/passwd" is no URL: write https://host/path`:                              {URL: "file:///etc/passwd"},
		`"jwks.json" is no URL: write https://host/path`:                                       {URL: "jwks.json"},
		"a URL with a password in it: credentials have settings of their own":                  {URL: "https://tom:secret@id.example.com/"},
		`algorithm "HS256" does not go with keys that are published: want RS, PS, ES or EdDSA`: {URL: "https://id.example.com/", Algorithm: "HS256"},
	} {
		if _, err := auth.NewKeySource(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := auth.NewClient(auth.ClientOptions{CA: []byte("nonsense")}); err == nil {
		t.Error("a CA that is none was accepted")
	}
}

func TestSecretsThatArePublishedAreNotUsed(t *testing.T) {
	k := ecKey(t, elliptic.P256())
	p := &provider{}
	p.publish(jwks(jwk(secret, map[string]any{"kid": "s", "alg": "HS256"}), jwk(k, map[string]any{"kid": "k"})), nil)
	inBubble(t, p, auth.KeySourceOptions{}, func(t *testing.T, s *auth.KeySource, v *auth.JWT) {
		synctest.Wait()
		if _, err := v.VerifyWait(&patient{}, hs256(secret, head("HS256", "s"), `{}`)); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}
