package http1

import "github.com/moongate/moongate/core"

// TrailerAllowed tells whether a line of this name may stand in a trailer section: none that frames or routes a message, modifies a request, speaks
// for somebody, says what the content is, or controls what becomes of an answer (RFC 9110 section 6.5.1, and the list of RFC 7230 section 4.1.2).
func TrailerAllowed(name []byte) bool {
	if core.KindOf(name) != core.KindOther {
		return false
	}
	if len(name) >= len(trailersBarred) {
		return true
	}
	for _, barred := range trailersBarred[len(name)] {
		if core.EqualFoldString(name, barred) {
			return false
		}
	}
	return true
}

// trailersBarred are those of them that have no kind of their own, by their length.
var trailersBarred = func() (t [20][]string) {
	for _, name := range []string{
		"cache-control", "max-forwards", "pragma", "range", "origin", "http2-settings", // that modify a request or route it
		"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
		"proxy-authorization", "proxy-authenticate", "www-authenticate", "authentication-info", "cookie2", "set-cookie2", // that speak for somebody
		"content-range",                                    // that say what the content is
		"age", "expires", "retry-after", "vary", "warning", // that control what becomes of an answer
	} {
		t[len(name)] = append(t[len(name)], name)
	}
	return t
}()
