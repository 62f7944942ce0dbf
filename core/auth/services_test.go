package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
)

// service is another service that is asked, and what it was asked.
func service(t *testing.T, handle http.HandlerFunc) (base string, client *http.Client, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	client = must(auth.NewClient(auth.ClientOptions{}))
	return server.URL, client, asked
}

func TestIntrospection(t *testing.T) {
	clock := now
	base, client, asked := service(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if id, _ := url.QueryUnescape(user); id != "gate:way" || password != "s%26t" || r.Method != "POST" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch token := r.PostFormValue("token"); token {
		case "good":
			fmt.Fprintf(w, `{"active":true,"sub":"tom","scope":"read write","exp":%d,"iss":"i","aud":["a"]}`, now.Unix()+30)
		case "client":
			io.WriteString(w, `{"active":true,"client_id":"robot","scope":"read","iss":"i","aud":"a"}`)
		case "expired":
			io.WriteString(w, `{"active":true,"sub":"tom","exp":1,"iss":"i","aud":"a"}`)
		case "nobody":
			io.WriteString(w, `{"active":true,"iss":"i","aud":"a","scope":"read"}`)
		case "narrow":
			io.WriteString(w, `{"active":true,"sub":"tom","iss":"i","aud":"a","scope":"write"}`)
		case "other":
			io.WriteString(w, `{"active":true,"sub":"tom","iss":"j","aud":"a"}`)
		case "html":
			io.WriteString(w, `<html>`)
		case "text":
			io.WriteString(w, `{"active":"true","sub":"tom"}`)
		case "down":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			io.WriteString(w, `{"active":false}`)
		}
	})
	v := must(auth.NewIntrospection(auth.IntrospectionOptions{URL: base, ClientID: "gate:way", ClientSecret: "s&t", Issuer: []string{"i"}, Audience: []string{"a"},
		Rules: []auth.Rule{{Claim: "scope", Contains: []string{"read"}}}, Client: client, Clock: func() time.Time { return clock }}))
	for range 2 {
		for token, want := range map[string]string{
			"good": "introspection tom", "client": "introspection robot", "expired": "401 token expired", "nobody": "401 token invalid", "narrow": "403 not allowed",
			"other": "401 token invalid", "inactive": "401 token invalid", "html": "503 temporarily unavailable", "text": "401 token invalid", "down": "503 temporarily unavailable",
		} {
			if got := outcome(v, request("/", "Authorization: Bearer "+token)); got != want {
				t.Errorf("%s: got %s, want %s", token, got, want)
			}
		}
	}
	if n := asked.Load(); n != 12 { // what could not be told is asked again
		t.Errorf("asked %d times", n)
	}
	if got := outcome(v, request("/")); got != "401 missing bearer token" {
		t.Error(got)
	}
	clock = clock.Add(31 * time.Second) // past exp, within the time that answers are kept
	before := asked.Load()
	if got := outcome(v, request("/", "Authorization: Bearer good")); got != "401 token expired" || asked.Load() == before {
		t.Errorf("past exp: %s", got)
	}
	if got := strings.Join(challenges(v, request("/", "Authorization: Bearer narrow")), "|"); got != `Bearer error="insufficient_scope"` {
		t.Error(got)
	}
}

// TestManyRequestsWithOneTokenAskOnce: and who leaves spoils it for nobody.
func TestManyRequestsWithOneTokenAskOnce(t *testing.T) {
	release := make(chan struct{})
	base, client, asked := service(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		io.WriteString(w, `{"active":true,"sub":"tom"}`)
	})
	v := must(auth.NewIntrospection(auth.IntrospectionOptions{URL: base, Client: client, Timeout: time.Minute}))
	var callers sync.WaitGroup
	gone, leave := context.WithCancel(t.Context())
	for i := range 20 {
		callers.Go(func() {
			w := auth.Waiter(&patient{})
			if i == 0 {
				w = leaving{gone}
			}
			who, err := v.Verify(w, request("/", "Authorization: Bearer t"))
			if i > 0 && (err != nil || who.User != "tom") {
				t.Errorf("%v", err)
			}
		})
	}
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	close(release)
	callers.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestManyTokensAtOnceAreEachTheirOwn: of users who have several, with other claims; remembered for a moment, and asked about anew all the time. A policy
// gives each of two names to what it knows.
func TestManyTokensAtOnceAreEachTheirOwn(t *testing.T) {
	base, client, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscanf(r.PostFormValue("token"), "t%d", &n)
		fmt.Fprintf(w, `{"active":%v,"sub":"user-%d","role":"role-%d"}`, n%5 != 0, n/10, n)
	})
	v := must(auth.NewIntrospection(auth.IntrospectionOptions{URL: base, Client: client, Timeout: time.Minute, Keep: time.Millisecond}))
	var both []auth.Verifier
	for _, name := range []string{"one", "other"} {
		both = append(both, must(auth.NewPolicy(auth.PolicyOptions{Verifiers: []auth.Named{{Name: name, Verifier: v}}})))
	}
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := range 150 {
				n := (c*37 + i*13) % 100
				who, err := both[(c+i)%2].Verify(&patient{}, request("/", fmt.Sprintf("Authorization: Bearer t%d", n)))
				if n%5 == 0 {
					if !errors.Is(err, auth.ErrInvalid) {
						t.Errorf("t%d: %v", n, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("t%d: %v", n, err)
					continue
				}
				role, _ := who.Claims.Get("role")
				if want := []string{"one", "other"}[(c+i)%2]; who.User != fmt.Sprint("user-", n/10) || role.Text() != fmt.Sprint("role-", n) || who.Verifier != want {
					t.Errorf("t%d: %s with %s by %s", n, who.User, role.Text(), who.Verifier)
				}
			}
		})
	}
	callers.Wait()
}

// leaving waits for as long as the client stays.
type leaving struct{ ctx context.Context }

func (l leaving) Wait(do func(context.Context)) error {
	do(l.ctx)
	return nil
}

func TestForwardAuth(t *testing.T) {
	base, client, asked := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", strings.Join([]string{r.Method, r.Header.Get("X-Forwarded-Method"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Uri"),
			r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"), r.Header.Get("Cookie"), r.Header.Get("X-Other")}, " "))
		switch r.Header.Get("Authorization") {
		case "good":
			w.Header().Set("X-Auth-User", "tom")
			w.Header().Add("X-Auth-Role", "admin")
			w.Header().Add("X-Auth-Role", "ops")
		case "nameless":
		case "odd":
			w.Header().Set("X-Auth-User", strings.Repeat("t", 2000))
		case "login":
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("X-Internal", "secret")
			http.Redirect(w, r, "https://login.example.com/", http.StatusFound)
		case "down":
			w.WriteHeader(http.StatusBadGateway)
		case "forbidden":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<p>no</p>")
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	v := must(auth.NewForward(auth.ForwardOptions{URL: base, Take: []string{"X-Auth-Role", "X-Seen"}, Client: client}))
	for line, want := range map[string]string{
		"good": "forward tom", "nameless": "503 temporarily unavailable", "odd": "503 temporarily unavailable", "login": "302 token invalid",
		"down": "503 temporarily unavailable", "forbidden": "403 not allowed", "bad": "401 token invalid",
	} {
		if got := outcome(v, request("/a%2Fb?x=%zz", "Authorization: "+line)); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
	who, err := v.Verify(&patient{}, request("/a%2Fb?x=%zz", "Authorization: good", "Cookie: c=d", "X-Other: x"))
	if err != nil {
		t.Fatal(err)
	}
	role, _ := who.Claims.Get("x-auth-role")
	if seen, _ := who.Claims.Get("x-seen"); role.Text() != "admin, ops" || seen.Text() != "GET GET Api.Example.com /a%2Fb?x=%zz 192.0.2.7 https c=d" {
		t.Errorf("role %q, seen %q", role.Text(), seen.Text())
	}
	_, err = v.Verify(&patient{}, request("/", "Authorization: login"))
	a := auth.AsRefusal(err).Answer()
	if a == nil || a.Status != 302 || string(a.Header.Get("Location")) != "https://login.example.com/" || string(a.Header.Get("Set-Cookie")) != "a=b" || a.Header.Has("X-Internal") {
		t.Errorf("%+v", a)
	}
	optional := must(auth.NewForward(auth.ForwardOptions{URL: base, Optional: true, Keep: time.Minute, Client: client}))
	before := asked.Load()
	for range 3 {
		if got := outcome(optional, request("/", "Authorization: nameless")); got != "forward " {
			t.Error(got)
		}
		if got := outcome(optional, request("/", "Authorization: bad")); got != "401 token invalid" {
			t.Error(got)
		}
	}
	if n := asked.Load() - before; n != 4 { // good answers are kept, others are not
		t.Errorf("asked %d times", n)
	}
	if _, err := v.Verify(hasty{}, request("/")); !errors.Is(err, auth.ErrUnavailable) {
		t.Error(err)
	}
	for _, o := range []auth.ForwardOptions{{URL: "ftp://x"}, {URL: base, User: "a b"}, {URL: base, Send: []string{""}}} {
		if _, err := auth.NewForward(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestServicesThatHangAreGivenUp(t *testing.T) {
	stop := make(chan struct{})
	base, client, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	defer close(stop)
	v := must(auth.NewForward(auth.ForwardOptions{URL: base, Timeout: 20 * time.Millisecond, Client: client}))
	i := must(auth.NewIntrospection(auth.IntrospectionOptions{URL: base, Timeout: 20 * time.Millisecond, Client: client}))
	for _, verifier := range []auth.Verifier{v, i} {
		if got := outcome(verifier, request("/", "Authorization: Bearer t")); got != "503 temporarily unavailable" {
			t.Error(got)
		}
	}
}

// vanishing is a waiter whose world ends with the client's.
type vanishing struct{ before bool }

func (v vanishing) Wait(do func(context.Context)) error {
	if !v.before {
		gone, leave := context.WithCancel(context.Background())
		leave()
		do(gone)
	}
	panic("the client has left")
}

func TestWhoVanishesLeavesNothingBehind(t *testing.T) {
	base, client, _ := service(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"active":true,"sub":"tom"}`) })
	for _, before := range []bool{true, false} {
		v := must(auth.NewIntrospection(auth.IntrospectionOptions{URL: base, Client: client}))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			v.Verify(vanishing{before}, request("/", "Authorization: Bearer t"))
		}()
		if got := outcome(v, request("/", "Authorization: Bearer t")); got != "introspection tom" {
			t.Errorf("vanished before %v: %s", before, got)
		}
	}
}
