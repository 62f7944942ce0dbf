package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func protocols(h1, h2, h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(h1)
	p.SetHTTP2(h2)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// upstreamH2C starts a server that speaks HTTP/2 without TLS.
func upstreamH2C(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	return narrowH2C(t, 250, f)
}

// narrowH2C starts one whose connections have room for so many streams.
func narrowH2C(t *testing.T, streams int, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = protocols(false, false, true)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func routeTo(url, more string) string {
	return fmt.Sprintf("[[upstream]]\nname = \"u\"\nendpoints = [%q]\n%s\n[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"u\"\n", url, more)
}

// client2 speaks HTTP/2 with prior knowledge to the gateway.
func (h *house) client2() *http.Client {
	tr := &http.Transport{Protocols: protocols(false, false, true), DisableCompression: true}
	h.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

func (h *house) do(c *http.Client, r *http.Request) (*http.Response, string) {
	h.t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp, string(body)
}

func (h *house) request(method, path string, body io.Reader, lines ...string) *http.Request {
	h.t.Helper()
	r, err := http.NewRequest(method, "http://"+h.addr+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Host = "gw.test"
	for i := 0; i < len(lines); i += 2 {
		r.Header.Add(lines[i], lines[i+1])
	}
	return r
}

func TestHTTP2ToAnUpstreamOfHTTP1(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, route(url))
	resp, body := h.do(h.client2(), h.request("GET", "/a%2Fb?x=%zz&;", nil, "X-One", "1", "TE", "trailers", "X-User-Id", "evil", "X-Forwarded-For", "6.6.6.6"))
	if resp.Proto != "HTTP/2.0" || body != "ok" || resp.ContentLength != 2 {
		t.Errorf("%s %d %q", resp.Proto, resp.ContentLength, body)
	}
	head := <-heads
	for _, want := range []string{"GET /a%2Fb?x=%zz&; HTTP/1.1\r\n", "X-One: 1\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Host: gw.test\r\n", "Via: 2.0 moongate\r\n", "TE: trailers\r\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("the upstream did not get %q:\n%s", want, head)
		}
	}
	if strings.Contains(head, "evil") || strings.Contains(head, "6.6.6.6") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestUpstreamsOfHTTP2GetTheRequestAsItIs(t *testing.T) {
	type seen struct {
		uri, method, host, body string
		header, trailer         http.Header
		length                  int64
	}
	got := make(chan seen, 1)
	url := upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.RequestURI, r.Method, r.Host, string(body), r.Header, r.Trailer, r.ContentLength}
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", "x/y")
		w.WriteHeader(201)
		_, _ = io.WriteString(w, "made")
	})
	h := open(t, routeTo(url, "protocol = \"h2c\"\nhost = \"client\""))
	for name, c := range map[string]*http.Client{"h1": {}, "h2": h.client2()} {
		if c.Transport == nil {
			tr := &http.Transport{DisableCompression: true}
			t.Cleanup(tr.CloseIdleConnections)
			c.Transport = tr
		}
		r := h.request("PUT", "/a%2Fb/%41?x=1&y=%zz;z", struct{ io.Reader }{strings.NewReader("some text")}, "X-Many", "1", "X-Many", "2", "User-Agent", "")
		r.Trailer = http.Header{"X-Sum": {"9"}}
		resp, body := h.do(c, r)
		if resp.StatusCode != 201 || body != "made" || !slices.Equal(resp.Header["Set-Cookie"], []string{"a=1", "b=2"}) || resp.Header.Get("Content-Type") != "x/y" {
			t.Errorf("%s: %d %q %v", name, resp.StatusCode, body, resp.Header)
		}
		s := <-got
		if s.uri != "/a%2Fb/%41?x=1&y=%zz;z" || s.method != "PUT" || s.host != "gw.test" || s.body != "some text" || s.length != -1 {
			t.Errorf("%s: the upstream got %+v", name, s)
		}
		if !slices.Equal(s.header["X-Many"], []string{"1", "2"}) || s.header["User-Agent"] != nil || s.header["Accept-Encoding"] != nil ||
			s.header.Get("X-Forwarded-For") != "127.0.0.1" || s.trailer.Get("X-Sum") != "9" {
			t.Errorf("%s: the upstream got %v and %v", name, s.header, s.trailer)
		}
	}
}

func TestUpstreamsOfHTTP2AnswerAsTheyDo(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		do     http.HandlerFunc
		want   string
	}{
		"a length": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "ok")
		}, `200 2 "ok" map[]`},
		"no length": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "ok")
		}, `200 -1 "ok" map[]`},
		"HEAD": {"HEAD", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "7") }, `200 7 "" map[]`},
		"304":  {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, `304 0 "" map[]`},
		"trailers, not announced": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Sum", "9")
		}, `200 -1 "ok" map[X-Sum:[9]]`},
		"1 MiB": {"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20)) }, ``},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, routeTo(upstreamH2C(t, c.do), "protocol = \"h2c\""))
			resp, body := h.do(h.client2(), h.request(c.method, "/", nil))
			if c.want == "" {
				if len(body) != 1<<20 {
					t.Errorf("%d bytes", len(body))
				}
				return
			}
			if got := fmt.Sprintf("%d %d %q %v", resp.StatusCode, resp.ContentLength, body, resp.Trailer); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestInterimAnswersPassFromHTTP2ToHTTP2(t *testing.T) {
	h := open(t, routeTo(upstreamH2C(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.Header().Del("Link")
		w.WriteHeader(200)
	}), "protocol = \"h2c\""))
	var seen []string
	r := h.request("GET", "/", nil)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, hd textproto.MIMEHeader) error {
		seen = append(seen, fmt.Sprint(code, hd))
		return nil
	}}))
	resp, _ := h.do(h.client2(), r)
	if len(seen) != 1 || seen[0] != "103 map[Link:[</a>]]" || resp.StatusCode != 200 {
		t.Errorf("%v, then %d", seen, resp.StatusCode)
	}
}

// cut gives an upstream of HTTP/2 that breaks off in the middle of a body.
func TestABodyThatIsCutStaysCutOverHTTP2(t *testing.T) {
	for _, proto := range []string{"h2c", "h1"} {
		cut := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		url := ""
		if proto == "h1" {
			url = upstream(t, cut)
		} else {
			url = upstreamH2C(t, cut)
		}
		h := open(t, routeTo(url, fmt.Sprintf("protocol = %q", proto)))
		resp, err := h.client2().Do(h.request("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil || string(body) != "half" {
			t.Errorf("%s: %q %v", proto, body, err)
		}
	}
}

func TestFaultsOfHTTP2UpstreamsAreThoseOfHTTP1(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + refused.Addr().String()
	refused.Close()
	release := make(chan struct{})
	defer close(release)
	for name, c := range map[string]struct {
		url, more string
		want      int
	}{
		"refused":   {dead, "", 502},
		"no HTTP/2": {upstream(t, func(http.ResponseWriter, *http.Request) {}), "", 502},
		"silence": {upstreamH2C(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}), "[upstream.timeouts]\nfirst_byte = \"100ms\"\n", 504},
		"aborted": {upstreamH2C(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "", 502},
		"closed at once": {scripted(t, func(nc net.Conn) {
			b := make([]byte, 100)
			_, _ = nc.Read(b)
		}), "", 502},
		"never settles": {scripted(t, func(nc net.Conn) { <-release }), "[upstream.timeouts]\nconnect = \"100ms\"\n", 502},
	} {
		h := open(t, routeTo(c.url, "protocol = \"h2c\"\n"+c.more))
		resp, body := h.do(h.client2(), h.request("GET", "/", nil))
		if resp.StatusCode != c.want {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, body, c.want)
		}
	}
}

func TestAClientThatLeavesEndsTheUpstreamsStream(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	h := open(t, routeTo(upstreamH2C(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	}), "protocol = \"h2c\""))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-arrived
		cancel()
	}()
	if resp, err := h.client2().Do(h.request("GET", "/", nil).WithContext(ctx)); err == nil {
		resp.Body.Close()
	}
	within(t, "the upstream is told", gone)
}

func TestBodiesOverTheLimitAreRefusedOverHTTP2(t *testing.T) {
	for _, proto := range []string{"h1", "h2c"} {
		read := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
		url := upstream(t, read)
		if proto == "h2c" {
			url = upstreamH2C(t, read)
		}
		h := open(t, routeTo(url, fmt.Sprintf("protocol = %q", proto))+"[route.http]\nmax_body = \"1KiB\"\n")
		for _, known := range []bool{true, false} {
			var body io.Reader = strings.NewReader(strings.Repeat("x", 2000))
			if !known {
				body = struct{ io.Reader }{body}
			}
			if resp, _ := h.do(h.client2(), h.request("POST", "/", body)); resp.StatusCode != 413 {
				t.Errorf("%s, length known %v: %d", proto, known, resp.StatusCode)
			}
		}
	}
}

// secureUpstream starts a server with TLS, whose certificate is written to ca.crt beside the configuration.
func secureUpstream(t *testing.T, dir string, c *tls.Config, p *http.Protocols, f http.HandlerFunc) string {
	t.Helper()
	keyPair(t, dir, "ca", "up.test")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = p
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = p.HTTP2()
	c.Certificates = []tls.Certificate{pair}
	s.TLS = c
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func TestUpstreamsAreReachedByTLS(t *testing.T) {
	for _, proto := range []string{"h1", "h2"} {
		dir := t.TempDir()
		keyPair(t, dir, "client", "gateway.test")
		raw, err := os.ReadFile(filepath.Join(dir, "client.crt"))
		if err != nil {
			t.Fatal(err)
		}
		clients := x509.NewCertPool()
		clients.AppendCertsFromPEM(raw)
		url := secureUpstream(t, dir, &tls.Config{ClientAuth: tls.RequireAnyClientCert, ClientCAs: clients}, protocols(proto == "h1", proto == "h2", false),
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "https://"+r.Host+"/next")
				fmt.Fprintf(w, "%s %s %s", r.Proto, r.TLS.ServerName, r.TLS.PeerCertificates[0].Subject.CommonName)
			})
		want := map[string]string{"h1": "HTTP/1.1 up.test client", "h2": "HTTP/2.0 up.test client"}[proto]
		text := func(options string) string {
			return routeTo(url, fmt.Sprintf("protocol = %q\n[upstream.tls]\n", proto)+strings.ReplaceAll(options, "DIR", dir))
		}
		own := "cert = \"DIR/client.crt\"\nkey = \"DIR/client.key\"\n"
		h := open(t, text("ca = \"DIR/ca.crt\"\nserver_name = \"up.test\"\n"+own))
		for range 3 {
			resp, body := h.do(h.client2(), h.request("GET", "/", nil))
			if body != want || resp.Header.Get("Location") != "http://gw.test/next" {
				t.Errorf("%s: %q %v", proto, body, resp.Header)
			}
		}
		for name, options := range map[string]string{
			"not trusted":  "server_name = \"up.test\"\n" + own,
			"another name": "ca = \"DIR/ca.crt\"\nserver_name = \"other.test\"\n" + own,
			"the address":  "ca = \"DIR/ca.crt\"\n" + own,
		} {
			h := open(t, text(options))
			if resp, body := h.do(h.client2(), h.request("GET", "/", nil)); resp.StatusCode != 502 {
				t.Errorf("%s, %s: %d %s", proto, name, resp.StatusCode, body)
			}
		}
		h = open(t, text("insecure = true\n"+own))
		if resp, _ := h.do(h.client2(), h.request("GET", "/", nil)); resp.StatusCode != 200 {
			t.Errorf("%s, insecure: %d", proto, resp.StatusCode)
		}
		h.write(text("ca = \"DIR/client.key\"\n"))
		if _, err := h.Reload(); err == nil || !strings.Contains(err.Error(), ":6: upstream.u.tls.ca: ") {
			t.Errorf("%s, a file that is no certificate: %v", proto, err)
		}
	}
}

// grpc makes a request as clients of gRPC do, with one message.
func (h *house) grpc(timeout string) *http.Request {
	r := h.request("POST", "/pkg.Service/Method", bytes.NewReader([]byte{0, 0, 0, 0, 2, 'h', 'i'}), "Content-Type", "application/grpc", "TE", "trailers")
	if timeout != "" {
		r.Header.Set("Grpc-Timeout", timeout)
	}
	return r
}

func TestErrorsOfTheGatewayAreCodesOfGRPC(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	slow := upstreamH2C(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	dead := "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		text, timeout string
		change        func(*http.Request)
		want          string
	}{
		"no route":         {strings.Replace(routeTo(dead, ""), "/**", "/other", 1), "", nil, "12 no route"},
		"upstream refused": {routeTo(dead, "protocol = \"h2c\""), "", nil, "14 upstream cannot be reached"},
		"first byte":       {routeTo(slow, "protocol = \"h2c\"\n[upstream.timeouts]\nfirst_byte = \"50ms\""), "", nil, "4 upstream did not answer in time"},
		"client's limit":   {routeTo(slow, "protocol = \"h2c\""), "50m", nil, "4 upstream did not answer in time"},
		"too large":        {routeTo(slow, "protocol = \"h2c\"") + "[route.http]\nmax_body = \"1B\"\n", "", nil, "8 request body too large"},
		"malformed":        {routeTo(slow, "protocol = \"h2c\""), "", func(r *http.Request) { r.URL.Path = "/a/../b" }, "13 "},
	} {
		h := open(t, c.text)
		r := h.grpc(c.timeout)
		if c.change != nil {
			c.change(r)
		}
		resp, body := h.do(h.client2(), r)
		code, message := resp.Header.Get("Grpc-Status"), resp.Header.Get("Grpc-Message")
		if resp.StatusCode != 200 || body != "" || resp.Header.Get("Content-Type") != "application/grpc" || len(resp.Trailer) > 0 || resp.Header["Content-Length"] != nil {
			t.Errorf("%s: %d %q %v", name, resp.StatusCode, body, resp.Header)
		}
		if got := code + " " + message; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestDeadlinesOfGRPCEndStreamsToo(t *testing.T) {
	var began, ended atomic.Int32
	h := open(t, routeTo(upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
		began.Add(1)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		ended.Add(1)
	}), "protocol = \"h2c\""))
	for _, deadline := range []string{"100m", "1S", "10S"} {
		resp, err := h.client2().Do(h.grpc(deadline))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.Header.Get("Grpc-Status") != "" && deadline != "10S" {
			continue // a slow machine: the deadline was there before the stream had begun
		}
		if err == nil {
			t.Error("the stream ended cleanly")
		}
		break
	}
	eventually(t, "the upstream hears of it", func() bool { return ended.Load() == began.Load() })
}

func TestTrailersAlonePassAsOneFrame(t *testing.T) {
	h := open(t, routeTo(upstreamH2C(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "5")
		w.Header()["Content-Length"] = nil
	}), "protocol = \"h2c\""))
	resp, body := h.do(h.client2(), h.grpc(""))
	if resp.Header.Get("Grpc-Status") != "5" || body != "" || len(resp.Trailer) > 0 || resp.ContentLength != 0 || resp.Header["Content-Length"] != nil {
		t.Errorf("%v %q %v %d", resp.Header, body, resp.Trailer, resp.ContentLength)
	}
}

func TestStreamsOfGRPCPassBothWays(t *testing.T) {
	h := open(t, routeTo(upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		b := make([]byte, 1024)
		for {
			n, err := r.Body.Read(b)
			_, _ = w.Write(b[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}), "protocol = \"h2c\""))
	in, out := io.Pipe()
	r := h.request("POST", "/s/m", in, "Content-Type", "application/grpc+proto", "TE", "trailers")
	resp, err := h.client2().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got := make([]byte, 5)
	for i := range 20 {
		text := fmt.Sprintf("%05d", i)
		_, _ = io.WriteString(out, text)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != text {
			t.Fatalf("%q %v", got, err)
		}
	}
	out.Close()
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%q %v %v", rest, err, resp.Trailer)
	}
}

func TestAnAnswerEndsWhileTheRequestGoesOn(t *testing.T) {
	for _, proto := range []string{"h1", "h2c"} {
		early := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }
		url := upstream(t, early)
		if proto == "h2c" {
			url = upstreamH2C(t, early)
		}
		h := open(t, routeTo(url, fmt.Sprintf("protocol = %q", proto)))
		in, out := io.Pipe()
		go func() {
			for {
				if _, err := io.WriteString(out, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}()
		resp, err := h.client2().Do(h.request("POST", "/", in))
		if err != nil {
			t.Fatal(proto, err)
		}
		if resp.StatusCode != 403 {
			t.Error(proto, resp.StatusCode)
		}
		resp.Body.Close()
		in.CloseWithError(errors.New("over"))
	}
}

func TestConnectionsOfHTTP2AreSharedAndKeptOverReloads(t *testing.T) {
	peers := make(chan string, 100)
	h := open(t, routeTo(upstreamH2C(t, func(_ http.ResponseWriter, r *http.Request) { peers <- r.RemoteAddr }), "protocol = \"h2c\""))
	c := h.client2()
	first := ""
	for i := range 10 {
		h.do(c, h.request("GET", "/", nil))
		switch peer := <-peers; {
		case i == 0:
			first = peer
		case peer != first:
			t.Fatal("another connection")
		}
		if i == 5 {
			if _, err := h.Reload(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestIdentityNamesPassInNoTrailerOfHTTP2(t *testing.T) {
	trailers := make(chan http.Header, 1)
	h := open(t, routeTo(upstreamH2C(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailers <- r.Trailer
	}), "protocol = \"h2c\""))
	r := h.request("POST", "/", struct{ io.Reader }{strings.NewReader("x")})
	r.Trailer = http.Header{"X-User-Id": {"evil"}, "X_user_id": {"evil"}, "X-Sum": {"9"}}
	h.do(h.client2(), r)
	if got := <-trailers; len(got) != 1 || got.Get("X-Sum") != "9" {
		t.Error(got)
	}
}
