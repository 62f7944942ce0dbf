package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// sticking is an upstream u of these endpoints whose clients stay by a cookie, with more settings of its own and of the cookie, and a route to it.
func sticking(more, cookie string, urls ...string) string {
	return fmt.Sprintf("[[upstream]]\nname = \"u\"\nendpoints = [\"%s\"]\n%s\n[upstream.sticky]\ncookie = \"s\"\nsecret = \"a secret of the test\"\n%s\n", strings.Join(urls, "\", \""),
		more, cookie) + "[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"u\"\n"
}

// given is what one answer says about the cookie.
func (h *house) given(lines string) (status, cookie string) {
	h.t.Helper()
	answer := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + lines + "\r\n")
	head, _, _ := strings.Cut(answer, "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		if value, ok := strings.CutPrefix(line, "Set-Cookie: "); ok {
			if cookie != "" {
				h.t.Fatalf("two cookies: %s", head)
			}
			cookie = value
		}
	}
	if len(head) < 12 {
		h.t.Fatalf("no answer: %q", answer)
	}
	return head[9:12], cookie
}

func TestTheCookieIsSecureWhereItCan(t *testing.T) {
	url := upstream(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct{ settings, lines, want string }{
		{"", "", "; Path=/; HttpOnly; SameSite=Lax"},
		{"secure = true", "", "; Path=/; HttpOnly; SameSite=Lax; Secure"},
		{"secure = true\nsame_site = \"None\"\npath = \"/shop\"\nmax_age = \"90s\"", "", "; Path=/shop; HttpOnly; SameSite=None; Max-Age=90; Secure"},
		{"same_site = \"Strict\"", "", "; Path=/; HttpOnly; SameSite=Strict"},
		{"", "X-Forwarded-Proto: https\r\n", "; Path=/; HttpOnly; SameSite=Lax; Secure"}, // by a trusted proxy
	} {
		h := open(t, sticking("", c.settings, url)+"[http]\ntrusted_proxies = [\"127.0.0.1\"]\n")
		_, cookie := h.given(c.lines)
		mark, attributes, _ := strings.Cut(cookie, ";")
		if ";"+attributes != c.want || !strings.HasPrefix(mark, "s=") || len(mark) != 22 {
			t.Errorf("%q with %q gives %q, want %q behind the mark", c.settings, c.lines, cookie, c.want)
		}
	}
}

func TestErrorsGiveNoCookie(t *testing.T) {
	status := new(atomic.Int64)
	url := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	h := open(t, sticking("health.failures = 1000", "", url))
	for _, c := range []struct {
		status int64
		gives  bool
	}{{200, true}, {302, true}, {404, true}, {500, false}, {503, false}} {
		status.Store(c.status)
		if got, cookie := h.given(""); got != fmt.Sprint(c.status) || (cookie != "") != c.gives {
			t.Errorf("%d gives %s, %q", c.status, got, cookie)
		}
	}
}

func TestAClientWhoseEndpointIsGoneMovesWithinTheRequest(t *testing.T) {
	gone := upstream(t, func(http.ResponseWriter, *http.Request) {})
	h := open(t, sticking("", "", gone))
	_, first := h.given("")
	mark, _, _ := strings.Cut(first, ";")
	next := upstream(t, func(http.ResponseWriter, *http.Request) {})
	dead := "http://127.0.0.1:1"
	h.write(sticking("", "", dead, next)) // the mark is of nobody any more
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	for range 4 { // whoever is chosen first, the one that answers is who is come back to
		status, cookie := h.given("Cookie: " + mark + "\r\n")
		if status != "200" || cookie == "" || strings.HasPrefix(cookie, mark+";") {
			t.Fatalf("%s %q", status, cookie)
		}
		to, _, _ := strings.Cut(cookie, ";")
		if status, again := h.given("Cookie: " + to + "\r\n"); status != "200" || again != "" {
			t.Fatalf("coming back: %s %q", status, again)
		}
	}
}

func TestTheCookieStandsBesideThoseOfTheEndpoint(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Set-Cookie", "own=1") })
	h := open(t, sticking("", "", url))
	answer := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.Contains(answer, "Set-Cookie: own=1\r\n") || !strings.Contains(answer, "Set-Cookie: s=") {
		t.Errorf("%s", answer)
	}
}

func TestTheCookieIsGivenWhateverTheEndpointSpeaks(t *testing.T) {
	h2c := upstreamH2C(t, func(http.ResponseWriter, *http.Request) {})
	h := open(t, sticking("protocol = \"h2c\"", "", h2c))
	if status, cookie := h.given(""); status != "200" || !strings.HasPrefix(cookie, "s=") {
		t.Errorf("HTTP/2: %s %q", status, cookie)
	}
	url, _, _ := echoer(t)
	h = open(t, sticking("", "", url)+"upgrade = [\"websocket\"]\n")
	nc, r := h.dial()
	send(t, nc, handshake+"\r\n")
	if head, err := readHead(r); err != nil || !strings.Contains(head, "\r\nSet-Cookie: s=") {
		t.Errorf("WebSocket: %q %v", head, err)
	}
}
