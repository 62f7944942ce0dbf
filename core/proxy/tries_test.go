package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

// endpoint is one that counts its requests, and answers with a status and the body that came.
func endpoint(t *testing.T, protocol string, status int) (url string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	return served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}), asked
}

func TestARefusedConnectionIsMadeElsewhereWhateverTheMethod(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		good, asked := endpoint(t, protocol, 200)
		for _, method := range []string{"GET", "POST"} {
			o := options(refused(t), good)
			o.Protocol, o.Health.Failures = protocol, 1000
			up := open(t, o)
			asked.Store(0)
			for range 4 { // the first is chosen first twice
				x := request(method, "/", carrying(io.MultiReader(strings.NewReader("hello")), -1))
				if got := forward(t, x, up, new(client)); got != (answered{200, "hello"}) {
					t.Errorf("%s: %v", method, got)
				}
				if x.Endpoint != up.Endpoints()[1] {
					t.Errorf("%s: the log would name %s", method, x.Endpoint)
				}
			}
			if asked.Load() != 4 {
				t.Errorf("%s: %d requests", method, asked.Load())
			}
			x := request(method, "/")
			x.Endpoint = up.Endpoints()[0] // a filter's choice
			if got := forward(t, x, up, new(client)); got.status != 502 {
				t.Errorf("%s to the endpoint that a filter chose: %v", method, got)
			}
		}
	})
}

func TestRequestsAreMadeAgainAsTheUpstreamSays(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		status int
		retry  upstream.RetryOptions
		body   string
		limit  int64 // of bodies that are held
		want   int   // requests
	}{
		"a listed status":       {"PUT", 503, upstream.RetryOptions{Attempts: 2, Status: []int{503}, Budget: 100}, "hello", 100, 3},
		"another status":        {"PUT", 500, upstream.RetryOptions{Attempts: 2, Status: []int{503}, Budget: 100}, "hello", 100, 1},
		"a method that may not": {"POST", 503, upstream.RetryOptions{Attempts: 2, Status: []int{503}, Budget: 100}, "hello", 100, 1},
		"a body that is long":   {"PUT", 503, upstream.RetryOptions{Attempts: 2, Status: []int{503}, Budget: 100}, "hello", 4, 1},
		"no attempts":           {"PUT", 503, upstream.RetryOptions{Status: []int{503}, Budget: 100}, "hello", 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, protocol string) {
				url, asked := endpoint(t, protocol, c.status)
				o := options(url)
				o.Protocol, o.Retry, o.Health.Failures = protocol, c.retry, 1000
				x := request(c.method, "/", carrying(io.MultiReader(strings.NewReader(c.body)), -1))
				x.Route.BodyBuffer = c.limit
				if got := forward(t, x, open(t, o), new(client)); got != (answered{c.status, c.body}) || int(asked.Load()) != c.want {
					t.Errorf("%v after %d requests, want %d", got, asked.Load(), c.want)
				}
			})
		})
	}
}

// TestAConnectionThatRestedAndIsClosedIsNobodysFault: the endpoint closes each behind its first answer, when the second request has come.
func TestAConnectionThatRestedAndIsClosedIsNobodysFault(t *testing.T) {
	var delivered atomic.Int32
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if _, err := http.ReadRequest(r); err == nil {
			delivered.Add(1)
		}
	})
	for method, want := range map[string][]int{"GET": {200, 200, 200}, "PUT": {200, 200, 200}, "POST": {200, 502, 200}} {
		up := open(t, options(url, refused(t)))
		delivered.Store(0)
		for i, status := range want {
			x := request(method, "/")
			x.Endpoint = up.Endpoints()[0]
			if got := forward(t, x, up, new(client)); got.status != status {
				t.Errorf("%s, request %d: %v, want %d", method, i+1, got, status)
			}
		}
		if up.Ready() != 2 {
			t.Errorf("%s: it spoke against the endpoint", method)
		}
		if method == "POST" && delivered.Load() != 1 {
			t.Errorf("a POST was delivered %d times", delivered.Load())
		}
	}
}

// TestAConnectionIsKeptAsLongAsItIsFit for another request.
func TestAConnectionIsKeptAsLongAsItIsFit(t *testing.T) {
	const whole = "Content-Length: 2\r\n\r\nok"
	for head, want := range map[string]int32{
		"HTTP/1.1 200 OK\r\n" + whole:                                    1,
		"HTTP/1.1 204 No Content\r\n\r\n":                                1,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 1,
		"HTTP/1.1 200 OK\r\nConnection: close\r\n" + whole:               3,
		"HTTP/1.0 200 OK\r\n" + whole:                                    3,
		"HTTP/1.1 200 OK\r\n" + whole + "and more":                       3,
	} {
		var conns atomic.Int32
		up := open(t, options(scripted(t, func(nc net.Conn) {
			conns.Add(1)
			for r := bufio.NewReader(nc); ; {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				_, _ = io.WriteString(nc, head)
			}
		})))
		for range 3 {
			if got := forward(t, request("GET", "/"), up, new(client)); got.status/100 != 2 {
				t.Errorf("%q: %v", head, got)
			}
		}
		if conns.Load() != want {
			t.Errorf("%q: %d connections, want %d", head, conns.Load(), want)
		}
	}
}

func TestClientsComeBackToTheEndpointOfTheirCookie(t *testing.T) {
	good, _ := endpoint(t, upstream.H1, 200)
	failing, _ := endpoint(t, upstream.H1, 503)
	other, _ := endpoint(t, upstream.H1, 200)
	o := options(good, other, failing)
	o.Health.Failures = 1000
	o.Sticky.Cookie = &upstream.StickyCookie{Name: "at", Secret: "key", Attributes: "; Path=/"}
	up := open(t, o)
	given := map[*core.Endpoint]string{}
	for range 6 {
		x := request("GET", "/")
		got := forward(t, x, up, new(client))
		cookie := string(x.Response.Header.Get("Set-Cookie"))
		if (got.status == 200) != strings.HasPrefix(cookie, "at=") || got.status == 200 && !strings.HasSuffix(cookie, "; Path=/") {
			t.Errorf("%d gave the cookie %q", got.status, cookie)
		}
		if cookie != "" {
			given[x.Endpoint], _, _ = strings.Cut(cookie, ";")
		}
	}
	if len(given) != 2 {
		t.Fatalf("cookies of %d endpoints", len(given))
	}
	for e, cookie := range given {
		for range 3 {
			x := request("GET", "/", with("Cookie", cookie))
			if forward(t, x, up, new(client)); x.Endpoint != e || x.Response.Header.Has("Set-Cookie") {
				t.Errorf("%s led to %s, and gave %q", cookie, x.Endpoint, x.Response.Header.Get("Set-Cookie"))
			}
		}
	}
	x := request("GET", "/")
	x.Request.Scheme, x.Endpoint = "https", nil
	for fmt.Sprint(x.Endpoint) != fmt.Sprint(up.Endpoints()[0]) {
		x = request("GET", "/", func(x *core.Exchange) { x.Request.Scheme = "https" })
		forward(t, x, up, new(client))
	}
	if got := string(x.Response.Header.Get("Set-Cookie")); !strings.HasSuffix(got, "; Path=/; Secure") {
		t.Errorf("over https: %q", got)
	}
}
