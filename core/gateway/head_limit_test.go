package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/moongate/moongate/core/gateway"
)

// journal is a log that a test reads while others write it.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func logTo(j *journal) func(*gateway.Options) {
	return func(o *gateway.Options) { o.Log = slog.New(slog.NewTextHandler(j, nil)) }
}

// TestHeadsOfRequestsAreHeldToTheirLimit: beyond [http] max_head no upstream is asked (RFC 6585 section 5).
func TestHeadsOfRequestsAreHeldToTheirLimit(t *testing.T) {
	for _, c := range []struct {
		limit  string
		cookie int
		want   string
	}{
		{"", 30 << 10, "200"},
		{"", 65 << 10, "431"},
		{"16KiB", 30 << 10, "431"},
		{"128KiB", 100 << 10, "200"},
		{"128KiB", 129 << 10, "431"},
	} {
		url, heads := recorder(t, ok)
		text := route(url)
		if c.limit != "" {
			text = fmt.Sprintf("[http]\nmax_head = %q\n", c.limit) + text
		}
		h := open(t, text)
		got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: " + strings.Repeat("c", c.cookie) + "\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.want+" ") {
			t.Errorf("limit %q, a cookie of %d bytes: %.60q", c.limit, c.cookie, got)
		}
		if asked := len(heads) > 0; asked != (c.want == "200") {
			t.Errorf("limit %q, a cookie of %d bytes: the upstream was asked: %t", c.limit, c.cookie, asked)
		}
	}
}

// TestAnAnswerWhoseHeadIsTooLargeNamesTheLimit: 502, and the log says which limit it was and where.
func TestAnAnswerWhoseHeadIsTooLargeNamesTheLimit(t *testing.T) {
	heads := map[string]struct {
		fields, size int
		want         string
	}{
		"large":        {1, 300 << 10, "head larger than 256 KiB, the limit"},
		"huge":         {1, 600 << 10, "head larger than 256 KiB, the limit"},
		"large fields": {40, 8 << 10, "head larger than 256 KiB, the limit"},
		"many fields":  {501, 10, "head of more than 500 fields, the limit"},
	}
	for name, head := range heads {
		handler := func(w http.ResponseWriter, _ *http.Request) {
			for i := range head.fields {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("c", head.size))
			}
		}
		for protocol, start := range map[string]func(*testing.T, http.HandlerFunc) string{"h1": upstream, "h2c": upstreamH2C} {
			url := start(t, handler)
			log := new(journal)
			h := open(t, fmt.Sprintf("[[upstream]]\nname = \"u\"\nprotocol = %q\nendpoints = [%q]\n", protocol, url)+route("u"), logTo(log))
			got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 502 ") || strings.Contains(got, "limit") {
				t.Errorf("%s over %s: %.200q", name, protocol, got)
			}
			if text := log.String(); !strings.Contains(text, head.want) || !strings.Contains(text, url) {
				t.Errorf("%s over %s: the log says %s, want %q", name, protocol, text, head.want)
			}
		}
	}
}
