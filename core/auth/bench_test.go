package auth_test

import (
	"crypto"
	"crypto/elliptic"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/moongate/moongate/core/auth"
)

const benchClaims = `{"sub":"tom","role":"admin","iss":"https://id.example.com","iat":1700000000,"exp":4000000000}`

// BenchmarkVerifyPublicKeys compares a token that nobody remembers, of a key set, with the call that checks its signature alone.
func BenchmarkVerifyPublicKeys(b *testing.B) {
	r, e := rsaKey(b, 2048), ecKey(b, elliptic.P256())
	set := jwks(jwk(r, map[string]any{"kid": "r"}), jwk(e, map[string]any{"kid": "e"}))
	for alg, key := range map[string]crypto.Signer{"RS256": r, "ES256": e} {
		kid := strings.ToLower(alg[:1])
		text := signed(b, alg, key, head(alg, kid), benchClaims)
		last := strings.LastIndexByte(text, '.')
		signature, err := jwt.NewParser().DecodeSegment(text[last+1:])
		if err != nil {
			b.Fatal(err)
		}
		v := verifier(b, auth.JWTOptions{KeySet: set, Clock: time.Now, Cache: -1})
		b.Run(alg+"/token", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(alg+"/signature", func(b *testing.B) {
			for b.Loop() {
				if err := jwt.GetSigningMethod(alg).Verify(text[:last], signature, key.Public()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerifiers is what a request costs whose proof was seen before.
func BenchmarkVerifiers(b *testing.B) {
	w := &patient{}
	keys := must(auth.NewAPIKeys(auth.APIKeysOptions{Keys: []auth.APIKey{{Hash: auth.HashAPIKey("k1"), User: "acme"}}}))
	tokens := must(auth.NewTokens(verifier(b, auth.JWTOptions{Clock: time.Now}), auth.Place{}, "api"))
	for name, test := range map[string]struct {
		v    auth.Verifier
		line string
	}{"api_key": {keys, "X-Api-Key: k1"}, "jwt": {tokens, "Authorization: Bearer " + token(benchClaims)}} {
		x := request("/", test.line)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := test.v.Verify(w, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
