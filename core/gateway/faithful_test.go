package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// twoDoors are a listener without and one with TLS.
const twoDoors = "[[listener]]\naddress = \"127.0.0.1:8080\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nself_signed = [\"localhost\", \"127.0.0.1\"]\n"

// leg is a way into a gateway of twoDoors. Its client invents nothing and follows nothing.
type leg struct {
	name, base string
	client     *http.Client
}

func (h *house) legs() []leg {
	h.t.Helper()
	urls := h.URLs()
	var legs []leg
	for _, l := range []struct {
		name, base string
		p          *http.Protocols
	}{
		{"h1", urls[0], protocols(true, false, false)}, {"h2c", urls[0], protocols(false, false, true)},
		{"h1 over TLS", urls[1], protocols(true, false, false)}, {"h2 over TLS", urls[1], protocols(false, true, false)},
	} {
		tr := &http.Transport{Protocols: l.p, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxResponseHeaderBytes: 1 << 20}
		h.t.Cleanup(tr.CloseIdleConnections)
		legs = append(legs, leg{l.name, l.base, &http.Client{Transport: tr, Timeout: time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}})
	}
	return legs
}

// ask sends a request whose target goes out byte for byte.
func (l leg) ask(t *testing.T, method, target string, body io.Reader, lines ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, l.base, body)
	if err != nil {
		t.Fatal(err)
	}
	path, query, has := strings.Cut(target, "?")
	r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Opaque: path, RawQuery: query, ForceQuery: has && query == ""}
	r.Header["User-Agent"] = nil
	for i := 0; i < len(lines); i += 2 {
		r.Header[lines[i]] = append(r.Header[lines[i]], lines[i+1])
	}
	resp, err := l.client.Do(r)
	if err != nil {
		t.Fatalf("%s: %s %.40s: %v", l.name, method, target, err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %s %.40s: %v", l.name, method, target, err)
	}
	return resp, all
}

// faithful runs a check over each way in, to upstreams of both versions of HTTP.
func faithful(t *testing.T, more string, serve http.HandlerFunc, check func(t *testing.T, l leg)) {
	t.Helper()
	for _, protocol := range []string{"h1", "h2c"} {
		to := upstream
		if protocol == "h2c" {
			to = upstreamH2C
		}
		h := open(t, twoDoors+routeTo(to(t, serve), fmt.Sprintf("protocol = %q\n", protocol))+more)
		for _, l := range h.legs() {
			t.Run(l.name+" to "+protocol, func(t *testing.T) { check(t, l) })
		}
	}
}

// sum tells what arrived, in the answer's head.
func sum(w http.ResponseWriter, r *http.Request) {
	hash := crc32.NewIEEE()
	n, err := io.Copy(hash, r.Body)
	w.Header().Set("X-Sum", fmt.Sprint(n, hash.Sum32(), err, r.ContentLength))
}

func TestTargetsReachTheUpstreamByteForByte(t *testing.T) {
	targets := []string{
		"/api/queues/%2F/q", "/a%2fb%20c%7Ed%E9", "/a%2fb%20c%7ed%e9", "/a;v=1/x;y", "/a+b", "/'()*!$&,=:@", "/%F0%9F%98%80", "/a?", "/a?b", "/?a=1;role=admin",
		"/?x=%zz&role=user&role=admin", "/?a;b=%zz&&c=", "/?%", "/?a=b=c&d", "/?q=" + strings.Repeat("x", 8000), "/a%3Fb?c", "/a/", "/?" + strings.Repeat("p=1&", 3000),
	}
	for name, c := range map[string]struct{ more, prefix string }{
		"plain": {"", ""}, "stripped": {"strip_prefix = \"/pre/fix\"\n", "/pre/fix"},
	} {
		t.Run(name, func(t *testing.T) {
			faithful(t, c.more, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }, func(t *testing.T, l leg) {
				for _, target := range targets {
					if resp, got := l.ask(t, "GET", c.prefix+target, nil); resp.StatusCode != 200 || string(got) != target {
						t.Errorf("%.60q arrived as %.60q (%d)", c.prefix+target, got, resp.StatusCode)
					}
				}
			})
		})
	}
}

func TestMethodsAndHeadersPassAndNoneIsInvented(t *testing.T) {
	gateways := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Trace-Id", "Via"}
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		h := maps.Clone(r.Header)
		for _, name := range gateways {
			delete(h, name)
		}
		w.Header()["Content-Type"] = nil
		w.Header()["Date"] = nil
		w.Header().Set("X-Method", r.Method)
		w.Header().Set("X-Names", fmt.Sprint(slices.Sorted(maps.Keys(h)), r.Header["X-Two"]))
		w.Header()["X-Back"] = []string{"1", "2, 3"}
		w.WriteHeader(200)
	}, func(t *testing.T, l leg) {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "M-SEARCH"} {
			resp, _ := l.ask(t, method, "/", nil, "X-Two", "a", "X-Two", "b, c", "Accept", "*/*")
			if got := resp.Header.Get("X-Method"); got != method {
				t.Errorf("%s arrived as %s", method, got)
			}
			want := "[Accept X-Two] [a b, c]"
			if got := strings.Replace(resp.Header.Get("X-Names"), "Content-Length ", "", 1); got != want {
				t.Errorf("%s: the upstream got %s, want %s", method, got, want)
			}
			if got := fmt.Sprint(resp.Header["X-Back"]); got != "[1 2, 3]" || resp.Header["Content-Type"] != nil || resp.Header["Server"] != nil {
				t.Errorf("%s: the client got %v", method, resp.Header)
			}
		}
	})
}

func TestStatusesPassAsTheyAre(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Location", "https://elsewhere.test/x")
		w.Header().Set("Content-Range", "bytes 0-4/10")
		w.WriteHeader(status)
	}, func(t *testing.T, l leg) {
		for _, status := range []int{200, 201, 202, 203, 204, 205, 206, 207, 226, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413,
			414, 415, 416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599} {
			resp, _ := l.ask(t, "GET", fmt.Sprint("/", status), nil)
			if resp.StatusCode != status || resp.Header.Get("Location") != "https://elsewhere.test/x" || resp.Header.Get("Content-Range") != "bytes 0-4/10" {
				t.Errorf("%d came as %d %v", status, resp.StatusCode, resp.Header)
			}
		}
	})
}

func TestEveryStatusPassesWithItsText(t *testing.T) {
	url := scripted(t, func(nc net.Conn) {
		for r := bufio.NewReader(nc); ; {
			head, err := readHead(r)
			if err != nil {
				return
			}
			var status int
			_, _ = fmt.Sscanf(head, "GET /%d ", &status)
			length := "Content-Length: 0\r\n"
			if status == 204 || status == 304 {
				length = ""
			}
			_, _ = fmt.Fprintf(nc, "HTTP/1.1 %d Text of (%[1]d), caf\xe9\r\n%s\r\n", status, length)
		}
	})
	h := open(t, twoDoors+routeTo(url, "health.failures = 1000"))
	for _, l := range h.legs() {
		for status := 200; status < 600; status++ {
			resp, body := l.ask(t, "GET", fmt.Sprint("/", status), nil)
			want := fmt.Sprintf("%d Text of (%[1]d), caf\xe9", status)
			if strings.HasPrefix(l.name, "h2") { // which has no texts
				want = strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
			}
			if strings.TrimSpace(resp.Status) != want || len(body) > 0 {
				t.Errorf("%s: %d came as %q with %q", l.name, status, resp.Status, body)
			}
		}
	}
}

func TestBodiesPassWhole(t *testing.T) {
	const size = 64 << 20
	source := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }
	hash := sha256.New()
	_, _ = io.Copy(hash, source())
	want := fmt.Sprintf("%x", hash.Sum(nil))
	faithful(t, "[route.http]\nmax_body = \"1GiB\"\n", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/down":
			if r.URL.RawQuery == "sized" {
				w.Header().Set("Content-Length", strconv.Itoa(size))
			}
			_, _ = io.Copy(w, source())
		default:
			hash := sha256.New()
			_, _ = io.Copy(hash, r.Body)
			fmt.Fprintf(w, "%x %d", hash.Sum(nil), r.ContentLength)
		}
	}, func(t *testing.T, l leg) {
		for _, sized := range []bool{true, false} {
			target, length := "/down", int64(-1)
			if sized {
				target, length = "/down?sized", size
			}
			r, err := l.client.Get(l.base + target)
			if err != nil {
				t.Fatal(err)
			}
			hash := sha256.New()
			_, err = io.Copy(hash, r.Body)
			r.Body.Close()
			if got := fmt.Sprintf("%x", hash.Sum(nil)); got != want || err != nil || r.ContentLength != length {
				t.Errorf("%s: %s %v, length %d", target, got, err, r.ContentLength)
			}
			up, err := http.NewRequestWithContext(t.Context(), "POST", l.base+"/up", source())
			if err != nil {
				t.Fatal(err)
			}
			up.ContentLength = length
			resp, err := l.client.Do(up)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != fmt.Sprint(want, " ", length) {
				t.Errorf("up, sized %v: %s", sized, got)
			}
		}
	})
}

func TestNoBodyStaysNoBodyAndCodedBodiesAreLeftAlone(t *testing.T) {
	coded := []byte("\x1f\x8b not really gzip \x00\xff")
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		sum(w, r)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("ETag", "\"x\"")
		w.Header().Set("Content-Length", strconv.Itoa(len(coded)))
		_, _ = w.Write(coded)
	}, func(t *testing.T, l leg) {
		for _, method := range []string{"GET", "DELETE", "POST"} {
			resp, body := l.ask(t, method, "/", nil)
			if got := resp.Header.Get("X-Sum"); got != "0 0 <nil> 0" {
				t.Errorf("%s: the upstream got %s", method, got)
			}
			if !bytes.Equal(body, coded) || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("ETag") != "\"x\"" || resp.ContentLength != int64(len(coded)) {
				t.Errorf("%s: %q %v", method, body, resp.Header)
			}
		}
		resp, body := l.ask(t, "HEAD", "/", nil)
		if len(body) > 0 || resp.ContentLength != int64(len(coded)) {
			t.Errorf("HEAD: %q, length %d", body, resp.ContentLength)
		}
		for _, reader := range []io.Reader{strings.NewReader("hello"), struct{ io.Reader }{strings.NewReader("hello")}} {
			resp, _ := l.ask(t, "PUT", "/", reader)
			if got := resp.Header.Get("X-Sum"); !strings.HasPrefix(got, fmt.Sprintf("5 %d <nil> ", crc32.ChecksumIEEE([]byte("hello")))) {
				t.Errorf("PUT: the upstream got %s", got)
			}
		}
	})
}

func TestLargeHeadsAndCookieLinesPass(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		for i := range 32 {
			w.Header().Set(fmt.Sprintf("X-Big-%d", i), r.Header.Get(fmt.Sprintf("X-Big-%d", i)))
		}
		w.Header()["Set-Cookie"] = []string{"a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT", "b=2", "a=3"}
	}, func(t *testing.T, l leg) {
		var lines []string
		for i := range 32 {
			lines = append(lines, fmt.Sprintf("X-Big-%d", i), strings.Repeat(string(rune('a'+i%26)), 1000))
		}
		resp, _ := l.ask(t, "GET", "/", nil, lines...)
		for i := 0; i < len(lines); i += 2 {
			if resp.Header.Get(lines[i]) != lines[i+1] {
				t.Fatalf("%s came back as %.20q", lines[i], resp.Header.Get(lines[i]))
			}
		}
		if got := strings.Join(resp.Header["Set-Cookie"], "|"); got != "a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT|b=2|a=3" {
			t.Error(got)
		}
	})
}
