package auth

import (
	"bytes"
	"errors"

	"github.com/moongate/moongate/core"
)

// Place says where a request carries a proof that is one text: one of the fields is set.
type Place struct {
	// Scheme is that of the Authorization header, such as Bearer or ApiKey, in any case.
	Scheme string
	// Header is the name of a header that has nothing else in it.
	Header string
	// Query is the name of a parameter. What stands in a URL ends up in logs: prefer the others.
	Query string
	// Cookie is the name of a cookie.
	Cookie string
}

// check wants exactly one place.
func (p Place) check() error {
	n := 0
	for _, text := range []string{p.Scheme, p.Header, p.Query, p.Cookie} {
		if text != "" {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("want one place to look for it: a header, a query parameter or a cookie")
	case p.Scheme != "" && !core.IsToken(core.Bytes(p.Scheme)):
		return errors.New("the scheme is no token")
	case p.Header != "" && !core.IsToken(core.Bytes(p.Header)):
		return errors.New("the header cannot have that name")
	}
	return nil
}

// find gives the text, nil when there is none. Two of them are refused: the upstream might believe the other. It is a view of the request.
func (p Place) find(r *core.Request) ([]byte, error) {
	switch {
	case p.Scheme != "":
		return p.authorization(&r.Header)
	case p.Header != "":
		return onlyLine(&r.Header, p.Header)
	case p.Query != "":
		return onlyParameter(r.RawQuery, p.Query)
	}
	return onlyCookie(&r.Header, p.Cookie)
}

func (p Place) authorization(h *core.Header) ([]byte, error) {
	if h.CountKind(core.KindAuthorization) > 1 {
		return nil, invalid("more than one Authorization header")
	}
	return credentials(h.GetKind(core.KindAuthorization), p.Scheme)
}

// credentials gives what follows a scheme in an Authorization value (RFC 9110, section 11.4), nil when there is none or the scheme is
// another.
func credentials(value []byte, scheme string) ([]byte, error) {
	value = core.Trim(value)
	if len(value) < len(scheme) || !core.EqualFoldString(value[:len(scheme)], scheme) {
		return nil, nil
	}
	rest := value[len(scheme):]
	if len(rest) == 0 {
		return nil, nil
	}
	if rest[0] != ' ' {
		if core.IsTokenByte(rest[0]) {
			return nil, nil // a scheme that only begins like it
		}
		return nil, invalid("Authorization is malformed")
	}
	if rest = core.Trim(rest); len(rest) == 0 {
		return nil, nil
	}
	return rest, nil
}

func onlyLine(h *core.Header, name string) (value []byte, err error) {
	fields := h.Fields()
	for i := range fields {
		if !core.EqualFoldString(fields[i].Name, name) {
			continue
		}
		if value != nil {
			return nil, invalid("more than one header " + name)
		}
		value = core.Trim(fields[i].Value)
	}
	if len(value) == 0 {
		return nil, nil
	}
	return value, nil
}

func onlyParameter(query []byte, name string) (value []byte, err error) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		key, text, _ := bytes.Cut(pair, []byte{'='})
		if string(unescape(key)) != name {
			continue
		}
		if value != nil {
			return nil, invalid("more than one parameter " + name)
		}
		value = unescape(text)
	}
	if len(value) == 0 {
		return nil, nil
	}
	return value, nil
}

// unescape decodes a part of a query. What cannot be decoded stays as it came.
func unescape(text []byte) []byte {
	if bytes.IndexByte(text, '%') < 0 && bytes.IndexByte(text, '+') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '+':
			out = append(out, ' ')
		case text[i] == '%' && i+2 < len(text) && unhex(text[i+1]) >= 0 && unhex(text[i+2]) >= 0:
			out = append(out, byte(unhex(text[i+1])<<4|unhex(text[i+2])))
			i += 2
		default:
			out = append(out, text[i])
		}
	}
	return out
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func onlyCookie(h *core.Header, name string) (value []byte, err error) {
	fields := h.Fields()
	for i := range fields {
		if fields[i].Kind != core.KindCookie {
			continue
		}
		for rest := fields[i].Value; len(rest) > 0; {
			var pair []byte
			pair, rest, _ = bytes.Cut(rest, []byte{';'})
			key, text, ok := bytes.Cut(core.Trim(pair), []byte{'='})
			if !ok || string(key) != name {
				continue
			}
			if value != nil {
				return nil, invalid("more than one cookie " + name)
			}
			value = text
		}
	}
	if len(value) == 0 {
		return nil, nil
	}
	return value, nil
}
