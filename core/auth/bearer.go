package auth

import "github.com/moongate/moongate/core"

// Bearer takes the bearer token out of a request's header (RFC 6750, section 2.1). Without an Authorization line, or with one
// of another scheme, the error is an [ErrMissing]; two lines are an [ErrInvalid], since the upstream might believe the other.
// The token is a view of the header.
func Bearer(h *core.Header) ([]byte, error) {
	if h.CountKind(core.KindAuthorization) > 1 {
		return nil, invalid("more than one Authorization header")
	}
	return BearerToken(h.GetKind(core.KindAuthorization))
}

// BearerToken takes the token out of one Authorization value: the scheme in any case (RFC 9110, section 11.1), one or more
// spaces, the token, and nothing else. A nil or empty value is an [ErrMissing]. The token is a view of the value.
func BearerToken(value []byte) ([]byte, error) {
	const scheme = "bearer"
	value = core.Trim(value)
	if len(value) < len(scheme) || !core.EqualFoldString(value[:len(scheme)], scheme) {
		return nil, errNoBearer
	}
	token := value[len(scheme):]
	if len(token) == 0 {
		return nil, errNoBearer
	}
	if token[0] != ' ' {
		if core.IsTokenByte(token[0]) {
			return nil, errNoBearer // a scheme that only begins like ours
		}
		return nil, errJunk
	}
	for len(token) > 0 && token[0] == ' ' {
		token = token[1:]
	}
	if !isToken68(token) {
		return nil, errJunk
	}
	return token, nil
}

var (
	errNoBearer = &Refusal{kind: ErrMissing, reason: "no Authorization header with the scheme Bearer"}
	errJunk     = &Refusal{kind: ErrInvalid, reason: "Authorization is not one bearer token"}
)

// isToken68 says that the text is a token68 (RFC 9110, section 11.2).
func isToken68(text []byte) bool {
	end := len(text)
	for end > 0 && text[end-1] == '=' {
		end--
	}
	for _, c := range text[:end] {
		if !token68[c] {
			return false
		}
	}
	return end > 0
}

// token68 are the bytes of a token68 but for its padding.
var token68 = func() (t [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/" {
		t[c] = true
	}
	return t
}()
