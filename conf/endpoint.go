package conf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is one address of an upstream.
type Endpoint struct {
	Pos     Pos
	URL     string // scheme://host:port, the port always written, or unix:/path
	Scheme  string // "http" or "https"
	Address string // host:port to connect to, or unix:/path
	Weight  int    // 0: drained
}

// String gives the URL and, unless it is 1, the weight.
func (e Endpoint) String() string {
	if e.Weight == 1 {
		return e.URL
	}
	return fmt.Sprintf("%s weight %d", e.URL, e.Weight)
}

const maxWeight = 1_000_000

var endpointSection = section[Endpoint]{
	custom("url", func(b *binder, key string, v Value, e *Endpoint) {
		if s, ok := b.text(key, v); ok {
			b.setURL(key, v.Pos, s, e)
		}
	}),
	integer("weight", func(e *Endpoint) *int { return &e.Weight }, 0, maxWeight),
}

// bindEndpoints reads a list of URLs and of tables { url, weight }.
func (b *binder) bindEndpoints(key string, v Value, u *Upstream) {
	items, ok := v.V.([]Value)
	if !ok {
		b.wants(key, v, `a list such as ["http://127.0.0.1:9001"]`)
		return
	}
	if len(items) == 0 {
		b.errs.Add(v.Pos, key, `is empty: write at least one endpoint, such as "http://127.0.0.1:9001"`)
	}
	seen := map[string]bool{}
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", key, i)
		b.note(path, item.Pos)
		if item.broken {
			continue
		}
		e := Endpoint{Pos: item.Pos, Weight: 1}
		switch x := item.V.(type) {
		case string:
			b.setURL(path, item.Pos, x, &e)
		case *Table:
			endpointSection.bind(b, path, x, &e)
			if !b.written(path + ".url") {
				b.errs.Add(item.Pos, path, `has no url: write { url = "http://host:port", weight = 1 }`)
			}
		default:
			b.wants(path, item, `a URL or a table such as { url = "http://127.0.0.1:9001", weight = 3 }`)
		}
		switch {
		case e.URL == "":
		case seen[e.URL]:
			b.errs.Add(item.Pos, path, "%s stands twice in the list: give it a weight instead", e.URL)
		default:
			seen[e.URL] = true
			u.Endpoints = append(u.Endpoints, e)
		}
	}
}

func (b *binder) setURL(key string, pos Pos, text string, e *Endpoint) {
	parsed, err := parseEndpoint(text)
	if err != nil {
		b.errs.Add(pos, key, "%s", err)
		return
	}
	e.URL, e.Scheme, e.Address = parsed.URL, parsed.Scheme, parsed.Address
}

// parseEndpoint reads scheme, host and port. A path would be silently lost, so it is refused.
func parseEndpoint(text string) (Endpoint, error) {
	const want = `write "http://host:port"`
	if isUnix(text) {
		if wrong := unixSocket(text); wrong != "" {
			return Endpoint{}, errors.New(wrong)
		}
		return Endpoint{URL: text, Scheme: "http", Address: text}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return Endpoint{}, fmt.Errorf("%q is no URL of an endpoint: %s", hideUser(text), want)
	case u.Scheme != "http" && u.Scheme != "https":
		return Endpoint{}, fmt.Errorf("the scheme %q is not served: %s", u.Scheme, want)
	case u.User != nil:
		return Endpoint{}, errors.New("a user or password in a URL is not sent: set the Authorization header in a filter")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return Endpoint{}, fmt.Errorf("%q has more than host and port: %s and use the route's rewrite for paths", shorten(text), want)
	}
	host := authority(u.Host)
	if host == "" {
		return Endpoint{}, fmt.Errorf("%q names no host and port: %s", shorten(text), want)
	}
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return Endpoint{URL: u.Scheme + "://" + host, Scheme: u.Scheme, Address: host}, nil
}

// hideUser keeps what stands before the @ of a URL out of an error.
func hideUser(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		return masked + shorten(text[i:])
	}
	return shorten(text)
}

// authority checks "host" or "host:port" and gives it in lower case; "" when it is neither. The port is 1 to 65535.
func authority(text string) string {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return ""
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() {
			return ""
		}
		return strings.ToLower(text)
	}
	if !isHostName(host) {
		return ""
	}
	return strings.ToLower(text)
}
