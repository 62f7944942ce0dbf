package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"time"

	"github.com/moongate/moongate/core"
)

// signature is what the Authorization header of a signed request says.
type signature struct {
	scheme    string
	key       string
	time      time.Time
	seconds   string // as it was written
	nonce     string
	headers   []string
	signature []byte
}

// signatureOf reads a header of the form
//
//	HMAC-SHA256 key="app", time="1700000000", nonce="k3bQ9xZ1", headers="content-type", signature="base64"
//
// headers may be left out; every other parameter stands exactly once, in any order.
func signatureOf(r *core.Request) (*signature, error) {
	if r.Header.CountKind(core.KindAuthorization) > 1 {
		return nil, invalid("more than one Authorization header")
	}
	value := r.Header.GetKind(core.KindAuthorization)
	s := &signature{}
	var rest []byte
	for _, scheme := range []string{schemeSHA256, schemeSHA512} {
		found, err := credentials(value, scheme)
		if err != nil {
			return nil, err
		}
		if found != nil {
			s.scheme, rest = scheme, found
		}
	}
	if rest == nil {
		return nil, &Refusal{kind: ErrMissing, reason: "no Authorization header with the scheme HMAC-SHA256 or HMAC-SHA512"}
	}
	params, err := authParams(string(rest))
	if err != nil {
		return nil, err
	}
	return s, s.read(params)
}

func (s *signature) read(params map[string]string) (err error) {
	s.key, s.seconds, s.nonce = params["key"], params["time"], params["nonce"]
	seconds, err := strconv.ParseUint(s.seconds, 10, 40)
	if err != nil || len(s.seconds) > 1 && s.seconds[0] == '0' {
		return invalid("time is no number of seconds since 1970")
	}
	s.time = time.Unix(int64(seconds), 0)
	if len(s.nonce) < 8 || len(s.nonce) > 128 || !isToken68([]byte(s.nonce)) {
		return invalid("nonce has not 8 to 128 letters, digits and -._~+/")
	}
	if s.signature, err = base64.StdEncoding.Strict().DecodeString(params["signature"]); err != nil || len(s.signature) == 0 || strings.ContainsAny(params["signature"], "\r\n") {
		return invalid("signature is no base64")
	}
	known := 4
	if list, ok := params["headers"]; ok {
		known++
		for _, name := range strings.Split(list, " ") {
			if !core.IsToken(core.Bytes(name)) || strings.ToLower(name) != name {
				return invalid("headers is not a list of names in lower case")
			}
			s.headers = append(s.headers, name)
		}
	}
	if len(params) != known {
		return invalid("Authorization has not exactly key, time, nonce, signature and perhaps headers")
	}
	return nil
}

// canonical is the text that is signed: the lines of docs/auth/hmac.md, joined by line feeds.
func (s *signature) canonical(r *core.Request, body []byte, newHash func() hash.Hash) []byte {
	sum := newHash()
	sum.Write(body)
	var b bytes.Buffer
	for _, line := range []string{s.scheme, s.key, s.seconds, s.nonce, r.Method, strings.ToLower(string(r.Host)), string(r.RawPath), string(r.RawQuery)} {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	for _, name := range s.headers {
		b.WriteString(name)
		b.WriteByte(':')
		b.WriteString(joined(&r.Header, name))
		b.WriteByte('\n')
	}
	b.WriteString(hex.EncodeToString(sum.Sum(nil)))
	return b.Bytes()
}

// joined gives the lines of a header as one value (RFC 9110, section 5.3), trimmed.
func joined(h *core.Header, name string) string {
	var values []string
	fields := h.Fields()
	for i := range fields {
		if core.EqualFoldString(fields[i].Name, name) {
			values = append(values, string(core.Trim(fields[i].Value)))
		}
	}
	return strings.Join(values, ", ")
}
