package conf

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// What is done with a path that has dot segments or empty segments in it.
const (
	PathStrict    = "strict"    // 400
	PathNormalise = "normalise" // resolved for matcher, scripts and upstream alike
	PathRaw       = "raw"       // forwarded as it came, matched as normalised
)

// HTTP is how the gateway speaks with clients.
type HTTP struct {
	Pos             Pos
	Path            string // PathStrict, PathNormalise or PathRaw
	IdentityHeaders []string
	TrustedProxies  []netip.Prefix
	TrustUnix       bool  `key:"trusted_proxies.unix"`
	MaxHead         int64 `unit:"bytes"`               // bytes of request line and headers
	MaxURL          int64 `key:"max_url" unit:"bytes"` // bytes of the request target
	MaxBody         int64 `unit:"bytes"`               // bytes of a request's body
	BodyBuffer      int64 `unit:"bytes"`               // bytes that a script or a predicate may ask for
	HeadTimeout     time.Duration
	IdleTimeout     time.Duration
	BodyIdle        time.Duration // between two reads of a request's body, and two of an answer's writes
	MinRate         int64         `unit:"speed"`         // bytes a second that a client sends a body with and reads an answer with; 0: any
	RateGrace       time.Duration `key:"min_rate_grace"` // what it may be behind with those
	Drain           time.Duration // for requests in flight when the process ends
	WebSockets      bool          `key:"http2_websockets"` // clients may open them over HTTP/2
}

// Equal tells whether two say the same, wherever they stand.
func (h HTTP) Equal(other HTTP) bool { return same(h, other) }

func defaultHTTP() HTTP {
	return HTTP{
		Path:            PathStrict,
		IdentityHeaders: []string{"X-User-Id", "X-User-Role"},
		MaxHead:         64 << 10,
		MaxURL:          16 << 10,
		MaxBody:         10 << 20,
		BodyBuffer:      1 << 20,
		HeadTimeout:     10 * time.Second,
		IdleTimeout:     60 * time.Second,
		BodyIdle:        30 * time.Second,
		MinRate:         100,
		RateGrace:       5 * time.Second,
		Drain:           10 * time.Second,
		WebSockets:      true,
	}
}

const (
	// shortest and longest bound every time limit that cannot be 0.
	shortest = time.Millisecond
	longest  = 24 * time.Hour
	// largestBody bounds what is only counted, largestBuffer what is held in memory.
	largestBody   = 1 << 40
	largestBuffer = 1 << 30
	// fastest bounds the speed that may be asked of a client, in bytes a second.
	fastest = 100 << 20
)

var httpSection = section[HTTP]{
	oneOf("path", func(h *HTTP) *string { return &h.Path }, PathStrict, PathNormalise, PathRaw),
	list("identity_headers", func(h *HTTP) *[]string { return &h.IdentityHeaders }, headerName),
	peersOf("trusted_proxies", func(h *HTTP) (*[]netip.Prefix, *bool) { return &h.TrustedProxies, &h.TrustUnix }),
	size("max_head", func(h *HTTP) *int64 { return &h.MaxHead }, 1<<10, 16<<20),
	size("max_url", func(h *HTTP) *int64 { return &h.MaxURL }, 64, 16<<20),
	size("max_body", func(h *HTTP) *int64 { return &h.MaxBody }, 1, largestBody),
	size("body_buffer", func(h *HTTP) *int64 { return &h.BodyBuffer }, 1, largestBuffer),
	duration("head_timeout", func(h *HTTP) *time.Duration { return &h.HeadTimeout }, shortest, longest),
	duration("idle_timeout", func(h *HTTP) *time.Duration { return &h.IdleTimeout }, shortest, longest),
	duration("body_idle", func(h *HTTP) *time.Duration { return &h.BodyIdle }, shortest, longest),
	speed("min_rate", func(h *HTTP) *int64 { return &h.MinRate }, 0, fastest),
	duration("min_rate_grace", func(h *HTTP) *time.Duration { return &h.RateGrace }, shortest, longest),
	duration("drain", func(h *HTTP) *time.Duration { return &h.Drain }, 0, longest),
	boolean("http2_websockets", func(h *HTTP) *bool { return &h.WebSockets }),
}

// checkHTTP refuses a URL limit that the head's limit never lets happen.
func (b *binder) checkHTTP(h *HTTP) {
	if h.MaxURL <= h.MaxHead {
		return
	}
	if b.written("http.max_url") {
		b.errs.Add(b.where("http.max_url", h.Pos), "http.max_url", "%s never happens, because max_head ends the head at %s: lower it or raise max_head",
			formatSize(h.MaxURL), formatSize(h.MaxHead))
		return
	}
	h.MaxURL = h.MaxHead
}

// headerName checks that a text is a token of RFC 9110 section 5.6.2.
func headerName(text string) string {
	if !isToken(text) {
		return fmt.Sprintf("%q is no header name", shorten(text))
	}
	return ""
}

func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return text != ""
}

// prefixes is a key that holds a list of networks; an address alone is a network of one.
func prefixes[T any](key string, at func(*T) *[]netip.Prefix) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		var found []netip.Prefix
		for _, text := range b.list(key, v, true, network) {
			p, _ := parsePrefix(text)
			found = append(found, p)
		}
		*at(into) = found
	}}
}

func network(text string) string {
	if _, err := parsePrefix(text); err != nil {
		return fmt.Sprintf(`%q is no network: write "10.0.0.0/8", "fd00::/8" or a single address`, shorten(text))
	}
	return ""
}

// parsePrefix reads a network; bits beyond its mask fall away.
func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
