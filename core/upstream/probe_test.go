package upstream_test

import (
	"bufio"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/upstream"
)

// speaking starts a server of one protocol, with TLS or without.
func speaking(t *testing.T, secure bool, set func(*http.Protocols), f http.HandlerFunc) (*httptest.Server, upstream.TLSOptions) {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = new(http.Protocols)
	set(s.Config.Protocols)
	s.Config.ErrorLog = nil
	if s.EnableHTTP2 = s.Config.Protocols.HTTP2(); !secure {
		s.Start()
		t.Cleanup(s.Close)
		return s, upstream.TLSOptions{}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, upstream.TLSOptions{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
}

func TestChecksSpeakWhatTheUpstreamSpeaks(t *testing.T) {
	h1 := func(p *http.Protocols) { p.SetHTTP1(true) }
	h2 := func(p *http.Protocols) { p.SetHTTP2(true) }
	h2c := func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }
	for _, c := range []struct {
		name, protocol string
		secure         bool
		set            func(*http.Protocols)
		major          int
	}{
		{"HTTP/1.1", upstream.H1, false, h1, 1},
		{"HTTP/1.1 over TLS", upstream.H1, true, h1, 1},
		{"HTTP/2", upstream.H2C, false, h2c, 2},
		{"HTTP/2 over TLS", upstream.H2, true, h2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := make(chan int, 10)
			s, secure := speaking(t, c.secure, c.set, func(_ http.ResponseWriter, r *http.Request) { seen <- r.ProtoMajor })
			o := checked(s.URL)
			o.Protocol, o.TLS, o.Check.Interval = c.protocol, secure, time.Hour
			if err := verdict(t, o); err != nil {
				t.Fatal(err)
			}
			if got := <-seen; got != c.major {
				t.Errorf("it was asked in HTTP/%d", got)
			}
			o.Check.Kind = upstream.CheckTCP
			if err := verdict(t, o); err != nil {
				t.Errorf("connecting found %v", err)
			}
		})
	}
}

func TestChecksVerifyCertificates(t *testing.T) {
	s, secure := speaking(t, true, func(p *http.Protocols) { p.SetHTTP1(true) }, func(http.ResponseWriter, *http.Request) {})
	for _, kind := range []string{upstream.CheckHTTP, upstream.CheckTCP} {
		o := checked(s.URL)
		o.Check.Kind, o.Check.Interval = kind, time.Hour
		if err := verdict(t, o); err == nil || !strings.Contains(err.Error(), "no TLS handshake") {
			t.Errorf("%s: an unknown authority: %v", kind, err)
		}
		o.TLS = secure
		o.TLS.ServerName = "other.example.org"
		if err := verdict(t, o); err == nil || !strings.Contains(err.Error(), "other.example.org") {
			t.Errorf("%s: another name: %v", kind, err)
		}
		o.TLS = upstream.TLSOptions{Insecure: true}
		if err := verdict(t, o); err != nil {
			t.Errorf("%s: not verified: %v", kind, err)
		}
		o.Protocol = upstream.H2
		if err := verdict(t, o); err == nil || !strings.Contains(err.Error(), "TLS") && !strings.Contains(err.Error(), "HTTP/2") {
			t.Errorf("%s: an endpoint that does not speak HTTP/2: %v", kind, err)
		}
	}
}

func TestChecksReachUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	hosts := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts <- r.Host }))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	o := checked("unix:" + path)
	o.Check.Interval = time.Hour
	if err := verdict(t, o); err != nil {
		t.Fatal(err)
	}
	if host := <-hosts; host != "localhost" {
		t.Errorf("Host is %s", host)
	}
}

func TestChecksBeginWithAHeaderThatNamesNobody(t *testing.T) {
	for version, want := range map[int]string{1: "PROXY UNKNOWN\r\n", 2: "\r\n\r\n\x00\r\nQUIT\n\x20"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		got := make(chan string, 1)
		go func() {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			r := bufio.NewReader(nc)
			head := make([]byte, len(want))
			_, _ = io.ReadFull(r, head)
			got <- string(head)
			if version == 2 {
				_, _ = r.Discard(3) // family and length; there is nothing behind them
			}
			if _, err := http.ReadRequest(r); err == nil {
				_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}()
		o := checked("http://" + l.Addr().String())
		o.Proxy, o.Check.Interval = version, time.Hour
		if err := verdict(t, o); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
		if head := <-got; head != want {
			t.Errorf("version %d begins with %q", version, head)
		}
	}
}

func TestAConnectionIsEnoughForATCPCheck(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := checked("http://" + l.Addr().String())
	o.Check.Kind, o.Check.Interval = upstream.CheckTCP, time.Hour
	if err := verdict(t, o); err != nil {
		t.Error(err)
	}
	l.Close()
	if err := verdict(t, o); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestGRPCChecksAskForAService(t *testing.T) {
	const serving = "\x00\x00\x00\x00\x02\x08\x01"
	for _, c := range []struct {
		name, message, status string
		code                  int
		want                  string
	}{
		{"serving", serving, "0", 200, ""},
		{"not serving", "\x00\x00\x00\x00\x02\x08\x02", "0", 200, "not serving: status 2"},
		{"nothing said", "\x00\x00\x00\x00\x00", "0", 200, "not serving: status 0"},
		{"a field that nobody knows", "\x00\x00\x00\x00\x06\x12\x02ab\x08\x01", "0", 200, ""},
		{"no such service", "", "5", 200, `gRPC status "5"`},
		{"no such method", "", "12", 200, `gRPC status "12"`},
		{"no trailers", serving, "", 200, `gRPC status ""`},
		{"a message that is cut", serving[:6], "0", 200, "malformed"},
		{"compressed", "\x01" + serving[1:], "0", 200, "malformed"},
		{"two messages", serving + serving, "0", 200, "malformed"},
		{"no message", "", "0", 200, "malformed"},
		{"another status", "", "", 503, "status 503"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := make(chan string, 10)
			s, _ := speaking(t, false, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + r.Header.Get("Te") + " " + string(body)
				w.Header().Set("Content-Type", "application/grpc")
				w.Header().Set("Trailer", "Grpc-Status")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.message)
				if c.status != "" {
					w.Header().Set("Grpc-Status", c.status)
				}
			})
			o := checked(s.URL)
			o.Protocol, o.Check.Kind, o.Check.Service, o.Check.Interval = upstream.H2C, upstream.CheckGRPC, "shop.Orders", time.Hour
			err := verdict(t, o)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("found %v, want %q", err, c.want)
			}
			if got, want := <-asked, "POST /grpc.health.v1.Health/Check application/grpc trailers \x00\x00\x00\x00\x0d\x0a\x0bshop.Orders"; got != want {
				t.Errorf("asked %q, want %q", got, want)
			}
		})
	}
}

func TestAGRPCCheckWithoutAServiceAsksForTheServer(t *testing.T) {
	asked := make(chan string, 10)
	s, _ := speaking(t, false, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.Header().Set("Grpc-Status", "0") // trailers alone: no message
	})
	o := checked(s.URL)
	o.Protocol, o.Check.Kind, o.Check.Interval = upstream.H2C, upstream.CheckGRPC, time.Hour
	if err := verdict(t, o); err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Error(err)
	}
	if got := <-asked; got != "\x00\x00\x00\x00\x00" {
		t.Errorf("asked %q", got)
	}
}
