package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// fieldBlock is a block of header lines, names and values in turn, that needs no state of its connection.
func fieldBlock(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return b.Bytes()
}

// answers2 starts an endpoint over HTTP/2 whose answer to everything has these heads, one behind the other, and a body.
func answers2(t *testing.T, body string, heads ...[]string) string {
	t.Helper()
	return frames(t, func(f framer, stream uint32, _ int, _ []byte) bool {
		for i, head := range heads {
			flags := byte(endHeaders)
			if body == "" && i == len(heads)-1 {
				flags |= endStream
			}
			f.frame(frameHeaders, flags, stream, fieldBlock(head...))
		}
		if body != "" {
			f.frame(frameData, endStream, stream, []byte(body))
		}
		return false
	})
}

// TestMalformedAnswersOfHTTP2Are502: no line of theirs reaches a client (RFC 9113 section 8.1.1).
func TestMalformedAnswersOfHTTP2Are502(t *testing.T) {
	for name, head := range map[string][]string{
		"a length that is no number":  {":status", "200", "content-length", "abc"},
		"a negative length":           {":status", "200", "content-length", "-1"},
		"a signed length":             {":status", "200", "content-length", "+5"},
		"an empty length":             {":status", "200", "content-length", ""},
		"a list of lengths":           {":status", "200", "content-length", "5, 5"},
		"two lengths":                 {":status", "200", "content-length", "5", "content-length", "5"},
		"a length beyond all":         {":status", "200", "content-length", "99999999999999999999"},
		"connection":                  {":status", "200", "connection", "x-secret", "x-secret", "1"},
		"transfer-encoding":           {":status", "200", "transfer-encoding", "chunked"},
		"keep-alive":                  {":status", "200", "keep-alive", "timeout=5"},
		"proxy-connection":            {":status", "200", "proxy-connection", "close"},
		"upgrade":                     {":status", "200", "upgrade", "websocket"},
		"a status with a sign":        {":status", "+200"},
		"a status of four digits":     {":status", "0200"},
		"a status of two digits":      {":status", "99"},
		"no status":                   {"x-a", "1"},
		"two statuses":                {":status", "200", ":status", "200"},
		"a status that comes late":    {"x-a", "1", ":status", "200"},
		"a pseudo-header of requests": {":status", "200", ":path", "/"},
		"a name in capitals":          {":status", "200", "X-A", "1"},
		"a name that is no token":     {":status", "200", "x a", "1"},
		"a line end in a value":       {":status", "200", "x-a", "1\r\nx-b: 2"},
	} {
		j := &journal{}
		for method, body := range map[string]string{"GET": "hello", "HEAD": ""} {
			h := open(t, twoDoors+routeTo(answers2(t, body, head), "protocol = \"h2c\"\nhealth.failures = 1000000"), logTo(j))
			for _, l := range h.legs() {
				resp, got := l.ask(t, method, "/", nil)
				if resp.StatusCode != 502 || method == "GET" && !strings.Contains(string(got), "malformed answer") {
					t.Errorf("%s, %s: %s gives %s, %q %v", name, l.name, method, resp.Status, got, resp.Header)
				}
			}
		}
		if !strings.Contains(j.String(), "malformed answer") {
			t.Errorf("%s: the log says\n%s", name, j)
		}
	}
}

// TestHTTP2HasNoSwitchOfProtocols: 101 is nothing that HTTP/2 knows (RFC 9113 section 8.6), and no client of HTTP/1.1 takes it for the answer to
// an offer that it made.
func TestHTTP2HasNoSwitchOfProtocols(t *testing.T) {
	url := answers2(t, "hello", []string{":status", "103", "link", "</a>"}, []string{":status", "101", "upgrade", "websocket"}, []string{":status", "200"})
	h := open(t, twoDoors+routeTo(url, "protocol = \"h2c\"\nhealth.failures = 1000000")+"upgrade = \"websocket\"\n")
	got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if strings.Contains(got, "HTTP/1.1 101") || !strings.Contains(got, "HTTP/1.1 502") {
		t.Errorf("got %q", got)
	}
	for _, l := range h.legs() {
		if resp, body := l.ask(t, "GET", "/", nil); resp.StatusCode != 502 {
			t.Errorf("%s: %s %q", l.name, resp.Status, body)
		}
	}
}

// TestWhiteSpaceAroundValuesOfHTTP2EndsHere: over HTTP/1.1 it is no part of a value, over HTTP/2 none may have it (RFC 9113 section 8.2.1).
func TestWhiteSpaceAroundValuesOfHTTP2EndsHere(t *testing.T) {
	url := answers2(t, "hello", []string{":status", "200", "x-a", " \ta b\t ", "x-b", "  "})
	h := open(t, twoDoors+routeTo(url, "protocol = \"h2c\""))
	for _, l := range h.legs() {
		resp, _ := l.ask(t, "GET", "/", nil)
		if got := resp.Header.Get("X-A"); resp.StatusCode != 200 || got != "a b" || resp.Header.Get("X-B") != "" {
			t.Errorf("%s: %s %q", l.name, resp.Status, resp.Header)
		}
	}
}

// refusedInTrailers are names whose lines no trailer section may have: they frame, route or modify a message, speak for somebody, say what its
// content is, or control what becomes of it (RFC 9110 section 6.5.1).
var refusedInTrailers = []string{"Age", "Authorization", "Authentication-Info", "Cache-Control", "Content-Encoding", "Content-Range", "Content-Type", "Cookie", "Date", "Expect",
	"Expires", "Forwarded", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Location", "Max-Forwards", "Origin", "Pragma",
	"Proxy-Authenticate", "Proxy-Authorization", "Range", "Retry-After", "Set-Cookie", "Vary", "Via", "Warning", "Www-Authenticate", "X-Forwarded-For", "X-Real-Ip"}

// TestTrailersCarryNothingThatSteers: whichever protocols they come and go by.
func TestTrailersCarryNothingThatSteers(t *testing.T) {
	seen := make(chan http.Header, 1)
	serve := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Trailer
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		for _, name := range append([]string{"X-Sum"}, refusedInTrailers...) {
			w.Header().Set(http.TrailerPrefix+name, "8")
		}
	}
	trailers := []string{"x-sum", "8"}
	for _, name := range refusedInTrailers {
		trailers = append(trailers, strings.ToLower(name), "evil")
	}
	bare := frames(t, func(f framer, stream uint32, _ int, _ []byte) bool {
		f.frame(frameHeaders, endHeaders, stream, []byte{0x88}) // :status 200
		f.frame(frameData, 0, stream, []byte("hello"))
		f.frame(frameHeaders, endHeaders|endStream, stream, fieldBlock(trailers...))
		return false
	})
	for name, up := range map[string]struct {
		text  string
		tells bool
	}{
		"h1":       {routeTo(upstream(t, serve), ""), true},
		"h2c":      {routeTo(upstreamH2C(t, serve), "protocol = \"h2c\""), true},
		"bare h2c": {routeTo(bare, "protocol = \"h2c\""), false},
	} {
		h := open(t, twoDoors+up.text)
		for _, l := range h.legs() {
			r, err := http.NewRequest("POST", l.base, struct{ io.Reader }{strings.NewReader("hello")})
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = http.Header{"X-Sum": {"9"}}
			for _, name := range refusedInTrailers {
				if strings.HasPrefix(l.name, "h1") || httpguts.ValidTrailerHeader(name) { // for the others the standard library resets the stream
					r.Trailer[name] = []string{"evil"}
				}
			}
			if resp, _ := h.do(l.client, r); resp.StatusCode != 200 || len(resp.Trailer) != 1 || resp.Trailer.Get("X-Sum") == "" {
				t.Errorf("%s to %s: the client got %s, %v", l.name, name, resp.Status, resp.Trailer)
			}
			if !up.tells {
				continue
			}
			if got := <-seen; len(got) != 1 || got.Get("X-Sum") != "9" {
				t.Errorf("%s to %s: the upstream got %v", l.name, name, got)
			}
		}
	}
}
