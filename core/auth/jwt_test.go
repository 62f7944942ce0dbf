package auth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/moongate/moongate/core/auth"
)

func TestMalformedTokensAreRefused(t *testing.T) {
	good := token(`{"sub":"tom"}`)
	parts := strings.Split(good, ".")
	last := good[:len(good)-1]
	head := func(text string) string { return hs256(secret, text, `{"sub":"tom"}`) }
	tests := map[string]string{
		"two parts":                       parts[0] + "." + parts[1],
		"four parts":                      good + ".",
		"five parts":                      good + ".a.b",
		"only dots":                       "..",
		"space before":                    " " + good,
		"space behind":                    good + " ",
		"line break behind":               good + "\n",
		"line break inside":               parts[0] + "." + parts[1] + "." + parts[2][:10] + "\r\n" + parts[2][10:],
		"padding":                         good + "=",
		"standard alphabet":               strings.Replace(token(`{"sub":"???>>>~~~"}`), "_", "/", 1),
		"unused bits of the last letter":  last + next(good[len(good)-1]),
		"another letter":                  strings.Replace(good, "e", "f", 1),
		"empty head":                      "." + parts[1] + "." + parts[2],
		"head with another algorithm":     head(`{"alg":"HS512"}`),
		"head with crit":                  head(`{"alg":"HS256","crit":["exp"],"exp":1}`),
		"head with an empty crit":         head(`{"alg":"HS256","crit":[]}`),
		"head with crit null":             head(`{"alg":"HS256","crit":null}`),
		"head with b64 false":             head(`{"alg":"HS256","b64":false}`),
		"head with b64 false and crit":    head(`{"alg":"HS256","b64":false,"crit":["b64"]}`),
		"head with b64 of another type":   head(`{"alg":"HS256","b64":"false"}`),
		"head with kid of another type":   head(`{"alg":"HS256","kid":7}`),
		"head with typ of another type":   head(`{"alg":"HS256","typ":{}}`),
		"head twice":                      head(`{"alg":"HS256"}{"alg":"HS256"}`),
		"head is a list":                  head(`[{"alg":"HS256"}]`),
		"head with alg twice":             head(`{"alg":"none","alg":"HS256"}`),
		"head with alg twice by escape":   head(`{"\u0061lg":"none","alg":"HS256"}`),
		"claims are a list":               token(`[]`),
		"claims are a string":             token(`"tom"`),
		"claims are empty":                token(``),
		"claims with a tail":              token(`{} {}`),
		"claims with a comma too many":    token(`{"a":1,}`),
		"claims without a value":          token(`{"a":}`),
		"claims with a comment":           token(`{/**/}`),
		"claims twice the same":           token(`{"sub":"eve","sub":"tom"}`),
		"claims twice the same, deep":     token(`{"a":[{"b":{"c":1,"c":2}}]}`),
		"claims twice the same of many":   token(`{` + many(40) + `,"n39":0}`),
		"claims nested too deep":          token(`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`),
		"claims with broken UTF-8":        token("{\"sub\":\"\xff\"}"),
		"claims with a lone surrogate":    token(`{"sub":"\ud800"}`),
		"claims with surrogates reversed": token(`{"sub":"\udc00\ud800"}`),
		"claims with a control byte":      token("{\"sub\":\"a\nb\"}"),
		"claims with a bad escape":        token(`{"sub":"\x41"}`),
		"claims cut in an escape":         token(`{"sub":"\`),
		"claims with a bad number":        token(`{"n":01}`),
		"claims with NaN":                 token(`{"n":NaN}`),
		"claims with a byte order mark":   token("\ufeff{}"),
		"iss of another type":             token(`{"iss":1}`),
		"sub of another type":             token(`{"sub":1}`),
		"sub null":                        token(`{"sub":null}`),
		"jti of another type":             token(`{"jti":[]}`),
		"aud of another type":             token(`{"aud":1}`),
		"aud a list of another type":      token(`{"aud":["a",1]}`),
		"longer than 8 KiB":               token(`{"sub":"` + strings.Repeat("a", 8<<10) + `"}`),
	}
	v := verifier(t, auth.JWTOptions{})
	for range 2 { // before and after a good token has been seen
		for name, text := range tests {
			if _, err := v.Verify(text); !errors.Is(err, auth.ErrInvalid) || err.Error() != "token invalid" || auth.Reason(err) == "" {
				t.Errorf("%s: got %v (%s)", name, err, auth.Reason(err))
			}
		}
		if _, err := v.Verify(good); err != nil {
			t.Errorf("good token: %v (%s)", err, auth.Reason(err))
		}
	}
	if _, err := v.Verify(""); !errors.Is(err, auth.ErrMissing) {
		t.Errorf("no token: %v", err)
	}
}

// next gives the letter whose bits differ in the last one only.
func next(letter byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, letter)^1:][:1]
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":%d`, i, i)
	}
	return b.String()[1:]
}

func TestHeadsWithMoreThanNeededAreAccepted(t *testing.T) {
	v := verifier(t, auth.JWTOptions{})
	for _, head := range []string{
		`{"alg":"HS256","kid":"2024","typ":"at+jwt","x5t":"abc","jku":"https://evil.example"}`,
		` { "alg" : "HS256" , "b64" : true } `,
		`{"typ":"JWT",` + "\r\n" + ` "alg":"HS256"}`,
	} {
		if _, err := v.Verify(hs256(secret, head, `{}`)); err != nil {
			t.Errorf("%s: %v (%s)", head, err, auth.Reason(err))
		}
	}
}

// TestPublishedExamples has the example of RFC 7515, appendix A.1, with the key it gives there, and of RFC 8037, appendix A.4.
func TestPublishedExamples(t *testing.T) {
	key, err := base64.RawURLEncoding.DecodeString("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, auth.JWTOptions{Secret: key, Issuer: []string{"joe"}, Clock: at(time.Unix(1300819379, 0))})
	verified, err := v.Verify("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." +
		"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ." +
		"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
	if err != nil {
		t.Fatal(err, auth.Reason(err))
	}
	if root, _ := verified.Claims.Get("http://example.com/is_root"); !root.Bool() {
		t.Error("claim is lost")
	}
	public, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	ed := verifier(t, auth.JWTOptions{PublicKey: publicPEM(t, ed25519.PublicKey(public))})
	_, err = ed.Verify("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc." +
		"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
	if auth.Reason(err) != "claims: not JSON" { // the example signs a sentence: its signature holds, its claims do not
		t.Errorf("got %v (%s)", err, auth.Reason(err))
	}
}

func FuzzVerify(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"alg":"HS256"}`, `{"sub":"tom","exp":1900000000.5,"aud":["a"],"n":[1,{"a":null}]}`},
		{`{"alg":"HS256","crit":["b64"]}`, `{"a":"\ud83d\ude00","a":1}`},
		{`{"\u0061lg":"HS256"}`, `{"nbf":1e19}`},
	} {
		f.Add(seed[0], seed[1], "x.y.z")
	}
	v, err := auth.NewJWT(auth.JWTOptions{Secret: secret, Clock: at(now), Cache: 16})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head, claims, raw string) {
		if _, err := v.Verify(raw); err == nil {
			t.Fatalf("accepted %q", raw)
		}
		text := hs256(secret, head, claims)
		first, err := v.Verify(text)
		if err != nil {
			if auth.Reason(err) == "" {
				t.Fatalf("%q, %q: no reason", head, claims)
			}
			return
		}
		if again, err := v.Verify(text); err != nil || again != first {
			t.Fatalf("%q, %q: a second look gives %v", head, claims, err)
		}
		if !strings.Contains(claims, "{") || first.Claims.Kind() != auth.Map {
			t.Fatalf("%q is no map", claims)
		}
		// Whatever is accepted, the library that others use reads as the same claims.
		if _, err := jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithJSONNumber()).Parse(text, func(*jwt.Token) (any, error) { return secret, nil }); err != nil {
			t.Fatalf("%q, %q: accepted here, but %v", head, claims, err)
		}
	})
}

func BenchmarkVerifyHS256(b *testing.B) {
	v := verifier(b, auth.JWTOptions{Clock: time.Now, Cache: -1})
	text := token(`{"sub":"tom","role":"admin","iss":"https://id.example.com","iat":1700000000,"exp":4000000000}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(text); err != nil {
			b.Fatal(err)
		}
	}
}
