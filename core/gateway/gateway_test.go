package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/metrics"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		os.Exit(code)
	}))
}

// house is a gateway of a test with its configuration file.
type house struct {
	*gateway.Gateway
	t    testing.TB
	file string
	addr string

	counts *metrics.Metrics
	stop   func()     // begins to drain
	ended  chan error // what Run has returned, closed behind it
	over2  bool       // its sockets come over HTTP/2
}

// open starts a gateway with the text as its configuration, and options as they are changed. It is closed, drained, with the test.
func open(t testing.TB, text string, change ...func(*gateway.Options)) *house {
	t.Helper()
	h := &house{t: t, file: filepath.Join(t.TempDir(), "gateway.toml")}
	h.write(text)
	access, err := gateway.OpenAccessLog("off", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	load := func() (*conf.Config, error) {
		c, err := conf.Load(h.file, conf.Options{Listen: "127.0.0.1:0"})
		if err == nil {
			unhurried(c)
		}
		return c, err
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := metrics.New(metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.counts = counts
	o := gateway.Options{Load: load, Metrics: counts, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Access: access}
	for _, change := range change {
		change(&o)
	}
	h.Gateway, err = gateway.New(o, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.stop, h.ended = cancel, make(chan error, 1)
	go func() {
		h.ended <- h.Run(ctx)
		close(h.ended)
	}()
	t.Cleanup(func() {
		cancel()
		for range h.ended {
		}
		_ = access.Close()
	})
	h.addr = h.Addresses()[0]
	return h
}

// unhurried gives upstreams more time than a test waits, where the configuration says nothing of it.
func unhurried(c *conf.Config) {
	ease := func(t *conf.Timeouts) {
		if t.FirstByte == 10*time.Second {
			t.FirstByte = 5 * patience
		}
		if t.Total == 15*time.Second {
			t.Total = 5 * patience
		}
		if t.Connect == time.Second {
			t.Connect = min(patience, t.Total)
		}
	}
	for i := range c.Upstreams {
		ease(&c.Upstreams[i].Timeouts)
	}
	for i := range c.Routes {
		ease(&c.Routes[i].Timeouts)
	}
}

func (h *house) write(text string) {
	h.t.Helper()
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// raw sends bytes and returns everything that comes until the gateway closes the connection.
func (h *house) raw(request string) string {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, request); err != nil {
		h.t.Fatal(err)
	}
	all, _ := io.ReadAll(patiently{nc})
	return string(all)
}

// upstream starts an HTTP server.
func upstream(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// scripted starts a TCP server that hands each connection to f.
func scripted(t testing.TB, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				f(nc)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return "http://" + l.Addr().String()
}

func route(upstream string) string {
	return fmt.Sprintf("[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = %q\n", upstream)
}

func TestARequestReachesTheUpstreamAndItsAnswerTheClient(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Case"] = []string{"1", "2"}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, r.Header.Get("X-Forwarded-For"))
	})
	h := open(t, route(up))
	got := h.raw("GET /a%2fb?x=1&y=%zz;z HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n\r\n")
	for _, want := range []string{"HTTP/1.1 200 OK\r\n", "X-Case: 1\r\n", "X-Case: 2\r\n", "Connection: close\r\n", "\r\n\r\nGET /a%2fb?x=1&y=%zz;z 127.0.0.1"} {
		if !strings.Contains(got, want) {
			t.Errorf("answer lacks %q:\n%s", want, got)
		}
	}
}

func TestBodiesStreamBothWays(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	h := open(t, route(up))
	for _, size := range []int{0, 1, 4000, 70_000, 3 << 20} {
		body := strings.Repeat("x", size)
		for _, chunked := range []bool{false, true} {
			var r io.Reader = strings.NewReader(body)
			if chunked {
				r = struct{ io.Reader }{r}
			}
			resp, err := http.Post("http://"+h.addr+"/", "text/plain", r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(got) != body {
				t.Fatalf("size %d chunked %v: got %d bytes, %v", size, chunked, len(got), err)
			}
		}
	}
}

func TestFaultsAreAnsweredAsJSON(t *testing.T) {
	slow := upstream(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	gone := "http://" + dead.Addr().String()
	dead.Close()
	h := open(t, fmt.Sprintf(`
[http]
max_head = "2KiB"
max_url = "1KiB"
max_body = "1KiB"
[[route]]
path = "/slow"
upstream = %q
[route.timeouts]
first_byte = "100ms"
[[route]]
path = "/dead"
upstream = %q
`, slow, gone))
	for _, c := range []struct{ request, want string }{
		{"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", "504"},
		{"GET /dead HTTP/1.1\r\nHost: a\r\n\r\n", "502"},
		{"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "404"},
		{"GET /none HTTP/1.1\r\n\r\n", "400"},
		{"GET /none HTTP/3.0\r\nHost: a\r\n\r\n", "505"},
		{"GET /" + strings.Repeat("a", 1100) + " HTTP/1.1\r\nHost: a\r\n\r\n", "414"},
		{"GET /none HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 2100) + "\r\n\r\n", "431"},
		{"POST /dead HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n", "413"},
		{"GET /a/../dead HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
	} {
		got := h.raw(strings.Replace(c.request, "Host: a", "Host: a\r\nConnection: close", 1))
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 "+c.want+" ") || !strings.HasPrefix(body, `{"code":`+c.want+`,"message":"`) {
			t.Errorf("%.40q gave %q, want %s", c.request, got, c.want)
		}
		if length := fmt.Sprintf("Content-Length: %d\r\n", len(body)); !strings.HasSuffix(body, "\"}\n") || strings.Count(body, "\n") != 1 || !strings.Contains(head+"\r\n", length) {
			t.Errorf("%.40q: %q is no line of its length", c.request, got)
		}
	}
}

func TestAClientThatLeavesStopsTheUpstream(t *testing.T) {
	began, stopped := make(chan struct{}), make(chan struct{})
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(stopped)
	})
	h := open(t, route(up))
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-began
	nc.Close()
	within(t, "the upstream is let go", stopped)
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "<%s %s>", r.URL.Path, b)
	})
	h := open(t, route(up))
	got := h.raw("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\nHost: a\r\n\r\n" +
		"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\nGET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	at := -1
	for _, want := range []string{"</1 ab>", "</2 >", "</3 c>", "</4 >"} {
		i := strings.Index(got, want)
		if i <= at {
			t.Fatalf("%s is missing or out of order in\n%s", want, got)
		}
		at = i
	}
}
