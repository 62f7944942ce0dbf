package core

import "net/http"

// StatusText is the reason phrase of a status (RFC 9110 section 15), "" when it has none.
func StatusText(status int) string {
	if status == StatusClientGone {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

// BodyAllowed tells whether an answer of this status may have content (RFC 9110 section 6.4.1).
func BodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
