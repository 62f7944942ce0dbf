package auth_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/core/auth"
)

// FuzzAuthorization: no Authorization line, cookie or query brings a verifier down, and none that was not made with a secret is accepted.
func FuzzAuthorization(f *testing.F) {
	for _, line := range []string{
		`HMAC-SHA256 key="a", time="1700000000", nonce="abcdefgh", headers="host date", signature="AAAA"`, `hmac-sha512 key=a,time=1 , nonce=x,signature="\""`,
		"Basic dG9tOmh1bnRlcjI=", "Bearer a.b.c", "ApiKey k", "Bearer", "", `HMAC-SHA256 key="`, "Basic Og==",
	} {
		f.Add(line, "key=%6b&key=x", "key=a; b")
	}
	key := []byte(strings.Repeat("\x01secret\x02", 8))
	list := []auth.Named{
		{Name: "hmac", Verifier: must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{{ID: "a", Secret: key}, {ID: "b", Secret: key, SHA512: true}}, Clock: at(now)}))},
		{Name: "keys", Verifier: must(auth.NewAPIKeys(auth.APIKeysOptions{Place: auth.Place{Scheme: "ApiKey"}, Keys: []auth.APIKey{{Hash: auth.HashAPIKey(string(key)), User: "u"}}}))},
		{Name: "query", Verifier: must(auth.NewAPIKeys(auth.APIKeysOptions{Place: auth.Place{Query: "key"}, Keys: []auth.APIKey{{Hash: auth.HashAPIKey(string(key)), User: "u"}}}))},
		{Name: "cookie", Verifier: must(auth.NewAPIKeys(auth.APIKeysOptions{Place: auth.Place{Cookie: "key"}, Keys: []auth.APIKey{{Hash: auth.HashAPIKey(string(key)), User: "u"}}}))},
		{Name: "tokens", Verifier: must(auth.NewTokens(must(auth.NewJWT(auth.JWTOptions{Secret: key[:32], Clock: at(now)})), auth.Place{}, "r"))},
	}
	p := must(auth.NewPolicy(auth.PolicyOptions{Verifiers: list}))
	f.Fuzz(func(t *testing.T, line, query, cookie string) {
		x := request("/?"+query, "Authorization: "+line, "Cookie: "+cookie)
		who, err := p.Verify(&patient{}, x)
		if err == nil {
			t.Fatalf("%q let in %s by %s", line, who.User, who.Verifier)
		}
		if r := auth.AsRefusal(err); r.Status() != 401 || r.Reason() == "" {
			t.Fatalf("%q: %d %q", line, r.Status(), r.Reason())
		}
	})
}
