package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/moongate/moongate/core/auth"
)

// startDemo serves the demo on free ports and returns the port below the first.
func startDemo(t *testing.T) int {
	t.Helper()
	base, err := freeBlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEMO_PORT", strconv.Itoa(base))
	d, err := openDemo(demoSecret)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	})
	return base
}

func TestDemoServicesSayWhoTheyAreAndWhatTheyGot(t *testing.T) {
	base := startDemo(t)
	for offset, name := range map[int]string{1: "user-service-1", 2: "user-service-2", 3: "user-service-3", 11: "order-service-1", 12: "order-service-2", 21: "canary"} {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(base+offset))
		q := question{address: address, method: "PUT", text: []byte("PUT /a%2fb?x=%zz&&y;z HTTP/1.1\r\nHost: example\r\nX-Two: 1\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\n<>")}
		a := q.ask()
		if a.err != nil {
			t.Fatal(a.err)
		}
		var got echoed
		if err := json.Unmarshal(a.body, &got); err != nil {
			t.Fatal(err)
		}
		if got.Service != name || got.Port != base+offset || got.Method != "PUT" || got.Path != "/a%2fb?x=%zz&&y;z" || got.Body != "<>" {
			t.Errorf("%s answered %s", name, a.body)
		}
		if got.Headers["Host"] != "example" || got.Headers["X-Two"] != "1, 2" {
			t.Errorf("%s got the headers %v", name, got.Headers)
		}
	}
}

func TestLoginGivesATokenThatTheGatewayBelieves(t *testing.T) {
	verifier, err := auth.NewJWT(auth.JWTOptions{Secret: []byte(demoSecret)})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(query string) (int, loggedIn) {
		w := httptest.NewRecorder()
		login([]byte(demoSecret)).ServeHTTP(w, httptest.NewRequest("GET", "/login"+query, nil))
		var got loggedIn
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return w.Code, got
	}
	for query, role := range map[string]string{"?user=tom": "user", "?user=tom&role=admin": "admin"} {
		status, got := ask(query)
		if status != 200 || got.ExpiresIn != 3600 {
			t.Fatalf("%s answered %d %v", query, status, got)
		}
		token, err := verifier.Verify(got.Token)
		if err != nil {
			t.Fatalf("the token of %s: %v", query, err)
		}
		if value, _ := token.Claims.Get("role"); value.Text() != role {
			t.Errorf("%s got the role %s", query, value.Text())
		}
	}
	for _, query := range []string{"", "?user=", "?user=a%20b", "?user=%0d%0a", "?user=tom&role=%00", "?user=" + strings.Repeat("x", 65)} {
		if status, _ := ask(query); status != 400 {
			t.Errorf("%s answered %d", query, status)
		}
	}
}

func TestSlowStopsWhenNobodyWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
	w := httptest.NewRecorder()
	slow("slow", 1).ServeHTTP(w, r)
	if w.Body.Len() > 0 {
		t.Errorf("answered %s", w.Body)
	}
}

func TestATakenDemoPortIsNamed(t *testing.T) {
	base := startDemo(t)
	_, err := openDemo(demoSecret)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(base+1)) || !strings.Contains(err.Error(), "DEMO_PORT=") {
		t.Errorf("got %v", err)
	}
	for _, wrong := range []string{"x", "0", "-1", "65500"} {
		t.Setenv("DEMO_PORT", wrong)
		if _, err := openDemo(""); err == nil || !strings.Contains(err.Error(), "DEMO_PORT="+wrong) {
			t.Errorf("DEMO_PORT=%s: %v", wrong, err)
		}
	}
}

func TestReloadPrintsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		status       int
		out, fails   string
	}{
		{"done", `{"ok":true,"generation":3,"milliseconds":12.5,"warnings":["a.toml:1: odd"]}`, 200, "warning: a.toml:1: odd\nreloaded: generation 3 serves, after 12 ms\n", ""},
		{"refused", `{"ok":false,"errors":["a.toml:1: x","b.lua:2: y"]}`, 422, "a.toml:1: x\nb.lua:2: y\n", "refused with 2 errors"},
		{"no token", `{"code":401,"message":"wants the admin token"}`, 401, "", "401 Unauthorized: wants the admin token"},
		{"something else", `<html>`, 200, "", "no admin listener"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "POST" || r.URL.Path != "/reload" || r.Header.Get("Authorization") != "Bearer t" {
					t.Errorf("asked %s %s with %v", r.Method, r.URL, r.Header)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.answer)
			}))
			defer srv.Close()
			var out strings.Builder
			err := reload(door{address: srv.Listener.Addr().String(), token: "t"}, &out)
			if out.String() != c.out {
				t.Errorf("printed %q, want %q", out.String(), c.out)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
}
