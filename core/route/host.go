package route

import (
	"bytes"
	"net/netip"
	"strings"
)

// maxHost is longer than any name of the DNS (RFC 1035 section 2.3.4) and any address.
const maxHost = 255

// hosts finds the trees of a request's host. The zero value knows none.
type hosts struct {
	exact   map[string]*tree
	suffix  map[string]*tree // by what follows "*."
	longest int              // length of the longest suffix
}

// add gives the tree of a name or pattern as parseHost returned it.
func (h *hosts) add(host string) *tree {
	if h.exact == nil {
		h.exact, h.suffix = map[string]*tree{}, map[string]*tree{}
	}
	m, key := h.exact, host
	if suffix, ok := strings.CutPrefix(host, "*."); ok {
		m, key = h.suffix, suffix
		h.longest = max(h.longest, len(key))
	}
	if m[key] == nil {
		m[key] = &tree{}
	}
	return m[key]
}

// search tries the host's own tree and then those of its suffixes, the longest first.
func (h *hosts) search(s *search, authority []byte) bool {
	var buf [maxHost + 2]byte
	host := hostName(authority, buf[:0])
	if len(host) == 0 {
		return false
	}
	if t := h.exact[string(host)]; t != nil && s.tree(t) {
		return true
	}
	if len(h.suffix) == 0 || host[0] == '[' {
		return false
	}
	for i := max(1, len(host)-h.longest-1); i < len(host); i++ {
		if host[i] != '.' {
			continue
		}
		if t := h.suffix[string(host[i+1:])]; t != nil && s.tree(t) {
			return true
		}
	}
	return false
}

// hostName is the host of an authority in the form that rules are kept in: lower case, without port and the dot of the root, IPv6
// addresses in brackets as RFC 5952 writes them. It is empty when there is no such host.
func hostName(authority, buf []byte) []byte {
	if len(authority) > 0 && authority[0] == '[' {
		return addressName(authority, buf)
	}
	host := authority
	if i := bytes.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	if n := len(host); n > 0 && host[n-1] == '.' {
		host = host[:n-1]
	}
	if len(host) > maxHost {
		return nil
	}
	for i, c := range host {
		if 'A' <= c && c <= 'Z' {
			return appendLower(append(buf, host[:i]...), host[i:])
		}
	}
	return host
}

func addressName(authority, buf []byte) []byte {
	end := bytes.IndexByte(authority, ']')
	if end < 0 || end > maxHost {
		return nil
	}
	addr, err := netip.ParseAddr(string(authority[1:end]))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return nil
	}
	return append(addr.AppendTo(append(buf, '[')), ']')
}

func appendLower(dst, src []byte) []byte {
	for _, c := range src {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// parseHost checks a host of a rule and brings it into the form that hosts keeps.
func parseHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil && addr.Is6() {
		if addr.Zone() != "" {
			return "", wrong("host", "%q: an address in a request has no zone", host)
		}
		return "[" + addr.String() + "]", nil
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	rest := strings.TrimPrefix(name, "*.")
	switch {
	case name == "*":
		return "", wrong("host", "leave it out to take every host")
	case strings.Contains(rest, "*"):
		return "", wrong("host", "%q: * stands only at the start, as in \"*.example.com\"", host)
	case strings.Contains(rest, ":"):
		return "", wrong("host", "%q: a name without scheme and port", host)
	case rest == "" || len(name) > maxHost || strings.HasPrefix(rest, ".") || strings.Contains(rest, ".."):
		return "", wrong("host", "%q is no host name", host)
	}
	for _, c := range []byte(rest) {
		switch {
		case c >= 0x80:
			return "", wrong("host", "%q: write international names as requests carry them, \"xn--...\"", host)
		case pathClass[c]&classUnreserved == 0:
			return "", wrong("host", "%q is no host name", host)
		}
	}
	return name, nil
}
