package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard keeps what changes the gateway from those who only reach its listener. With a token it asks for the token. Without one it
// serves this machine alone, and not the pages of a browser that runs on it: a page of another site can send a request to
// 127.0.0.1, and a name of its own that resolves there can make it look like the same site.
func guard(o Options, next http.Handler) http.Handler {
	sites := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case o.Token != "" && !bears(r, o.Token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "wants the admin token as Authorization: Bearer TOKEN")
		case o.Token == "" && !o.Loopback:
			refuse(w, http.StatusForbidden, "an admin listener elsewhere than loopback wants a token: set [admin] token")
		case o.Token == "" && !loopbackHost(r.Host):
			refuse(w, http.StatusForbidden, "without a token only localhost is served, as Host says")
		case sites.Check(r) != nil || fromAnotherSite(r):
			refuse(w, http.StatusForbidden, "a page of another site may not do this")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// fromAnotherSite tells whether a browser says that a page of another site asks. The standard library's check lets GET and HEAD pass, which
// change nothing; here they cost, and show what is nobody's business.
func fromAnotherSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// bears tells whether the request carries the token; how long that takes tells nothing about it.
func bears(r *http.Request, token string) bool {
	fields := r.Header.Values("Authorization")
	if len(fields) != 1 {
		return false
	}
	scheme, given, _ := strings.Cut(fields[0], " ")
	a, b := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// loopbackHost tells whether a Host names this machine by a name that no resolver can lend to somebody else.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
