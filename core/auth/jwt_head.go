package auth

import (
	"cmp"
	"strings"
)

// head is what a token's first part says (RFC 7515, section 4.1).
type head struct {
	part     string
	alg, kid string
	hasKid   bool
}

// parseHead reads a token's head. What it says about keys, but for the name of one, is never followed.
func (v *JWT) parseHead(part string, scratch []byte) (*head, error) {
	if known := v.head.Load(); known != nil && known.part == part {
		return known, nil
	}
	text, ok := decode(scratch[:0], part)
	if !ok {
		return nil, invalid("head is not base64url")
	}
	fields, err := parseMap(string(text))
	if err != nil {
		return nil, invalid("head: " + err.Error())
	}
	for _, name := range []string{"typ", "cty", "kid"} {
		if value, ok := fields.Get(name); ok && value.Kind() != String {
			return nil, invalid("head: " + name + " is not a string")
		}
	}
	if _, ok := fields.Get("crit"); ok { // section 4.1.11: no extension is known here
		return nil, invalid("head: crit names extensions")
	}
	if b64, ok := fields.Get("b64"); ok && !b64.Bool() { // RFC 7797
		return nil, invalid("head: b64 is not true")
	}
	alg, _ := fields.Get("alg")
	if alg.Kind() != String || v.key != nil && alg.Text() != v.key.method.Alg() {
		return nil, invalid("head: alg is not " + cmp.Or(v.Algorithm(), "a string"))
	}
	kid, hasKid := fields.Get("kid")
	return &head{part: strings.Clone(part), alg: alg.Text(), kid: kid.Text(), hasKid: hasKid}, nil
}

// find gives the key that made the signature.
func (v *JWT) find(w Waiter, h *head, text string, signature []byte) (*key, error) {
	switch {
	case v.key != nil:
		if !v.key.verify(text, signature) {
			return nil, invalid("signature does not match")
		}
		return v.key, nil
	case v.source == nil:
		k, _, err := v.keys.find(h, text, signature)
		return k, err
	}
	set, err := v.source.first(w)
	if err != nil {
		return nil, err
	}
	for range 2 { // a fetch that was on its way may have begun too early
		k, stale, err := set.find(h, text, signature)
		if err == nil || !stale {
			return k, err
		}
		next, more := v.source.newer(w, set)
		if more != nil {
			return nil, more
		}
		if next == nil {
			return nil, err
		}
		set = next
	}
	k, _, err := set.find(h, text, signature)
	return k, err
}
