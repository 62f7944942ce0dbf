package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
)

// callTo is a call of a URL.
func callTo(t *testing.T, text string) *core.Call {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &core.Call{Scheme: u.Scheme, Authority: u.Host, Method: "GET", Path: []byte("/" + strings.TrimPrefix(u.EscapedPath(), "/")), MaxAnswer: 1 << 20, Timeout: 10 * time.Second}
	if u.RawQuery != "" {
		c.Query = []byte(u.RawQuery)
	}
	return c
}

const loopback = "[scripts.http]\nallow = [\"127.0.0.0/8\", \"::1\"]\n"

func TestCallsToURLsKeepTheirConnections(t *testing.T) {
	addresses := make(chan string, 3)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses <- r.RemoteAddr
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("X-A"), body)
	}))
	defer s.Close()
	h := open(t, route("http://127.0.0.1:1")+loopback)
	for range 3 {
		c := callTo(t, s.URL+"/a%2Fb?c=d")
		c.Method, c.Body = "POST", []byte("text")
		c.Header.Add("X-A", "1")
		h.Generation().Call(context.Background(), nil, c)
		if c.Err != nil || c.Answer.Status != 200 || string(c.Answer.Body) != "POST /a%2Fb?c=d 1 text" {
			t.Fatalf("%v, %d, %s", c.Err, c.Answer.Status, c.Answer.Body)
		}
	}
	if first, second, third := <-addresses, <-addresses, <-addresses; first != second || first != third {
		t.Errorf("connections from %s, %s, %s", first, second, third)
	}
}

func TestWhatACallCannotDoIsSaidInWords(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2<<20))
		case "/streamed":
			w.(http.Flusher).Flush()
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2<<20))
		case "/slow":
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("short"))
		}
	}))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	nonsense := scripted(t, func(nc net.Conn) {
		if _, err := readHead(bufio.NewReader(nc)); err == nil {
			_, _ = io.WriteString(nc, "SSH-2.0-nonsense\r\n\r\n")
		}
	})
	h := open(t, route("http://127.0.0.1:1")+loopback)
	for target, want := range map[string]string{
		plain.URL + "/long":     "answer longer than 1048576 bytes",
		plain.URL + "/streamed": "answer longer than 1048576 bytes",
		plain.URL + "/slow":     "timed out after 200ms",
		plain.URL + "/cut":      "upstream closed the connection",
		nonsense:                "upstream sent a malformed answer",
		secure.URL + "/":        "upstream cannot be reached", // nobody vouches for its certificate
		"http://127.0.0.1:1/":   "upstream cannot be reached",
	} {
		c := callTo(t, target)
		if strings.HasSuffix(target, "/slow") {
			c.Timeout = 200 * time.Millisecond
		}
		h.Generation().Call(context.Background(), nil, c)
		if want = c.Authority + ": " + want; c.Err == nil || c.Err.Error() != want {
			t.Errorf("%s: %v, want %s", target, c.Err, want)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	url, heads, left := working(t)
	h := open(t, route("http://127.0.0.1:1")+loopback)
	ctx, cancel := context.WithCancelCause(context.Background())
	c := callTo(t, url)
	ended := make(chan struct{})
	go func() {
		h.Generation().Call(ctx, nil, c)
		close(ended)
	}()
	<-heads
	cancel(errors.New("the client has left"))
	within(t, "the call ends", ended)
	within(t, "the asked one is let go", left)
	if c.Err == nil || !strings.HasSuffix(c.Err.Error(), ": the client has left") {
		t.Error(c.Err)
	}
}

func TestURLsLeadToPublicAddressesOnly(t *testing.T) {
	h := open(t, route("http://127.0.0.1:1"))
	for _, host := range []string{"127.0.0.1:1", "localhost:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "172.16.0.1", "192.168.1.1",
		"169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "100.64.0.1", "224.0.0.1", "255.255.255.255", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "2130706433:1", "127.1:1"} {
		c := callTo(t, "http://"+host+"/")
		c.Timeout = 5 * time.Second
		h.Generation().Call(context.Background(), nil, c)
		if c.Err == nil || c.Err.Error() != host+": address not allowed" && !strings.HasPrefix(host, "2130706433") && !strings.HasPrefix(host, "127.1") || c.Answer.Status != 0 {
			t.Errorf("%s: %v", host, c.Err)
		}
	}
}

func TestCallsDoNotLeadBack(t *testing.T) {
	asked, loops := make(chan string, 10), make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { loops <- strings.Join(r.Header.Values("CDN-Loop"), ", ") }))
	defer s.Close()
	h := open(t, route("http://127.0.0.1:1")+loopback, through(&stage{name: "auth", request: func(x *core.Exchange) (*core.Reply, error) {
		asked <- string(x.Request.RawPath)
		return core.ErrorReply(core.FromFilter, 403, "no"), nil
	}}))
	c := callTo(t, "http://"+h.addr+"/")
	h.Generation().Call(context.Background(), nil, c)
	if c.Err == nil || !strings.HasSuffix(c.Err.Error(), ": address not allowed") || len(asked) > 0 {
		t.Errorf("to its own address: %v", c.Err)
	}
	x := new(core.Exchange)
	x.Request.Header.Add("CDN-Loop", "other; id=1")
	h.Generation().Call(context.Background(), x, callTo(t, s.URL))
	mark, kept := strings.CutPrefix(<-loops, "other; id=1, ")
	if !kept || !strings.HasPrefix(mark, "moongate; id=") {
		t.Fatalf("the loop mark is %q, or those of others are lost", mark)
	}
	for mark, want := range map[string]int{mark: 508, "a, " + mark + " ,b": 508, "other; id=1": 403, mark + "0": 403, "moongate": 403} {
		if _, resp := h.ask("GET / HTTP/1.1\r\nHost: a\r\nCDN-Loop: " + mark + "\r\nConnection: close\r\n\r\n"); resp != want {
			t.Errorf("%q: status %d, want %d", mark, resp, want)
		}
	}
	h.write(route("http://127.0.0.1:1") + loopback + "allow_loops = true\n")
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	c = callTo(t, "http://"+h.addr+"/")
	h.Generation().Call(context.Background(), nil, c)
	if c.Err != nil || c.Answer.Status != 403 {
		t.Errorf("loops are allowed: %v, %d", c.Err, c.Answer.Status)
	}
}

// ask sends one request and gives the answer's status.
func (h *house) ask(text string) (string, int) {
	h.t.Helper()
	answer := h.raw(text)
	var status int
	_, _ = fmt.Sscanf(answer, "HTTP/1.1 %d", &status)
	return answer, status
}

func TestNamedUpstreamsKeepTheirHealthAndPools(t *testing.T) {
	var hits [2]atomic.Int64
	var urls []string
	for i := range hits {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if hits[i].Add(1); i == 0 {
				w.WriteHeader(500)
			}
		}))
		t.Cleanup(s.Close)
		urls = append(urls, s.URL)
	}
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"auth\"\nendpoints = [%q, %q]\nhealth = { failures = 2, out = \"1h\" }\n", urls[0], urls[1])+route("auth"))
	for range 20 {
		c := &core.Call{Upstream: "auth", Method: "GET", Path: []byte("/"), MaxAnswer: 100}
		h.Generation().Call(context.Background(), nil, c)
		if c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if bad, good := hits[0].Load(), hits[1].Load(); bad != 2 || good != 18 {
		t.Errorf("%d and %d, want the one that fails put out after 2", bad, good)
	}
	up := h.Generation().Upstream("auth")
	if s := up.State(up.Endpoints()[0]); s.Ready || s.InFlight != 0 || up.Ready() != 1 {
		t.Errorf("%+v", s)
	}
	if text := h.scrape(); !strings.Contains(text, `moongate_call_duration_seconds_count{upstream="auth"} 20`) {
		t.Error("calls are not counted")
	}
}

func TestAShortTimeoutOfAScriptSpeaksAgainstNoEndpoint(t *testing.T) {
	url, _, _ := working(t)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"auth\"\nendpoints = [%q, \"http://127.0.0.1:1\"]\nbalance = \"smooth_weighted\"\nhealth = { failures = 1 }\n", strings.TrimSuffix(url, "/"))+route("auth"))
	for range 3 {
		c := &core.Call{Upstream: "auth", Method: "GET", Path: []byte("/"), MaxAnswer: 100, Timeout: 100 * time.Millisecond}
		h.Generation().Call(context.Background(), nil, c)
	}
	up := h.Generation().Upstream("auth")
	if !up.State(up.Endpoints()[0]).Ready {
		t.Error("the endpoint was put out")
	}
}

func TestCallsAllAtOnce(t *testing.T) {
	gate := make(chan struct{})
	arrived := make(chan struct{}, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-gate
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer s.Close()
	h := open(t, route("http://127.0.0.1:1")+loopback)
	var calls []*core.Call
	for i := range 8 {
		calls = append(calls, callTo(t, fmt.Sprintf("%s/%d", s.URL, i)))
	}
	go func() {
		for range calls {
			<-arrived
		}
		close(gate)
	}()
	h.Generation().Call(context.Background(), nil, calls...)
	for i, c := range calls {
		if c.Err != nil || string(c.Answer.Body) != fmt.Sprintf("/%d", i) {
			t.Errorf("%d: %v, %s", i, c.Err, c.Answer.Body)
		}
	}
}
