package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/moongate/moongate/core/auth"
)

func raw64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is the public part of a key, or a shared secret, as JSON, with further members laid over it.
func jwk(key any, more map[string]any) string {
	fields := map[string]any{}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		fields = map[string]any{"kty": "RSA", "n": raw64(k.N.Bytes()), "e": raw64(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PrivateKey:
		point, err := k.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(point) / 2
		fields = map[string]any{"kty": "EC", "crv": k.Params().Name, "x": raw64(point[1 : 1+half]), "y": raw64(point[1+half:])}
	case ed25519.PrivateKey:
		fields = map[string]any{"kty": "OKP", "crv": "Ed25519", "x": raw64(k.Public().(ed25519.PublicKey))}
	case []byte:
		fields = map[string]any{"kty": "oct", "k": raw64(k)}
	}
	for name, value := range more {
		fields[name] = value
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func jwks(keys ...string) []byte { return []byte(`{"keys":[` + strings.Join(keys, ",") + `]}`) }

// signed signs claims with a key under a head.
func signed(t testing.TB, alg string, key any, head, claims string) string {
	t.Helper()
	text := b64(head) + "." + b64(claims)
	signature, err := jwt.GetSigningMethod(alg).Sign(text, key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + raw64(signature)
}

func head(alg, kid string) string {
	if kid == "" {
		return fmt.Sprintf(`{"alg":%q}`, alg)
	}
	return fmt.Sprintf(`{"alg":%q,"kid":%q}`, alg, kid)
}

// TestPublishedKeysAndTokens has the keys and tokens of RFC 7515, appendices A.1 to A.3, and the key of RFC 8037, appendix A.2.
func TestPublishedKeysAndTokens(t *testing.T) {
	const claims = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	set := jwks(
		`{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}`,
		`{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}`,
		`{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
		`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`)
	v := verifier(t, auth.JWTOptions{KeySet: set, Issuer: []string{"joe"}, Clock: at(time.Unix(1300819379, 0))})
	for name, text := range map[string]string{
		"A.1": "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + claims + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		"A.2": "eyJhbGciOiJSUzI1NiJ9." + claims + ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
		"A.3": "eyJhbGciOiJFUzI1NiJ9." + claims + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
	} {
		verified, err := v.Verify(text)
		if err != nil {
			t.Errorf("%s: %v (%s)", name, err, auth.Reason(err))
			continue
		}
		if root, _ := verified.Claims.Get("http://example.com/is_root"); !root.Bool() {
			t.Errorf("%s: a claim is lost", name)
		}
	}
	_, err := v.Verify("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
	if auth.Reason(err) != "claims: not JSON" { // the example signs a sentence
		t.Errorf("RFC 8037: %v (%s)", err, auth.Reason(err))
	}
}

func TestEveryKeyOfASetVerifiesItsOwnTokensAlone(t *testing.T) {
	keys := map[string]crypto.PrivateKey{}
	r, r2, p256, p384, p521, ed := rsaKey(t, 2048), rsaKey(t, 2048), ecKey(t, elliptic.P256()), ecKey(t, elliptic.P384()), ecKey(t, elliptic.P521()), edKey(t)
	long := []byte(strings.Repeat("s", 64))
	var set []string
	for _, alg := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		keys[alg] = r
		set = append(set, jwk(r, map[string]any{"alg": alg, "kid": alg, "use": "sig", "x5u": "https://evil.example", "x5c": []string{"x"}}))
	}
	for alg, k := range map[string]crypto.PrivateKey{"ES256": p256, "ES384": p384, "ES512": p521, "EdDSA": ed} {
		keys[alg] = k
		set = append(set, jwk(k, map[string]any{"kid": alg, "key_ops": []string{"verify"}}))
	}
	for _, alg := range []string{"HS256", "HS384", "HS512"} {
		keys[alg] = long
		set = append(set, jwk(long, map[string]any{"alg": alg, "kid": alg}))
	}
	set = append(set, jwk(r2, map[string]any{"kid": "default"}), jwk(r2, map[string]any{"kid": "enc", "use": "enc"}), jwk(r2, map[string]any{"kid": "wrap", "key_ops": []string{"wrapKey"}}),
		`{"kty":"martian","kid":"m"}`, `{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA","kid":"k1"}`, `{"kty":"OKP","crv":"X25519","x":"AA","kid":"x"}`)
	v := verifier(t, auth.JWTOptions{KeySet: jwks(set...)})
	for alg, k := range keys {
		for other := range keys {
			_, err := v.Verify(signed(t, alg, k, head(alg, other), `{"sub":"tom"}`))
			if (err == nil) != (other == alg) {
				t.Errorf("a token of %s with the kid of %s: %v (%s)", alg, other, err, auth.Reason(err))
			}
		}
	}
	for kid, good := range map[string]bool{"default": true, "enc": false, "wrap": false, "none": false} {
		if _, err := v.Verify(signed(t, "RS256", r2, head("RS256", kid), `{}`)); (err == nil) != good {
			t.Errorf("kid %s: %v (%s)", kid, err, auth.Reason(err))
		}
	}
	if _, err := v.Verify(signed(t, "PS256", r2, head("PS256", "default"), `{}`)); err == nil {
		t.Error("a key that names no algorithm verified with another than the first of its kind")
	}
	only := verifier(t, auth.JWTOptions{KeySet: jwks(set...), Algorithm: "PS256"})
	for kid, good := range map[string]bool{"default": true, "PS256": false} {
		if _, err := only.Verify(signed(t, "PS256", r2, head("PS256", kid), `{}`)); (err == nil) != good {
			t.Errorf("with one algorithm, kid %s: %v", kid, err)
		}
	}
}

func TestTokensWithoutKidPassWhenExactlyOneKeyVerifies(t *testing.T) {
	a, b, ec := rsaKey(t, 2048), rsaKey(t, 2048), ecKey(t, elliptic.P256())
	set := jwks(jwk(a, map[string]any{"kid": "a"}), jwk(b, map[string]any{"kid": "b"}), jwk(ec, nil), jwk(ec, nil))
	v := verifier(t, auth.JWTOptions{KeySet: set})
	for _, k := range []*rsa.PrivateKey{a, b} {
		if _, err := v.Verify(signed(t, "RS256", k, head("RS256", ""), `{}`)); err != nil {
			t.Error(err, auth.Reason(err))
		}
	}
	if _, err := v.Verify(signed(t, "RS256", rsaKey(t, 2048), head("RS256", ""), `{}`)); err == nil {
		t.Error("a stranger's key was accepted")
	}
	for _, kid := range []string{"", "unheard-of"} { // a key without a name may be anybody's
		if _, err := v.Verify(signed(t, "ES256", ec, head("ES256", kid), `{}`)); err != nil {
			t.Error(kid, err, auth.Reason(err))
		}
	}
	twice := verifier(t, auth.JWTOptions{KeySet: jwks(jwk(a, map[string]any{"kid": "a"}), jwk(a, map[string]any{"kid": "b"}))})
	if _, err := twice.Verify(signed(t, "RS256", a, head("RS256", ""), `{}`)); auth.Reason(err) != "several keys fit: the token names none" {
		t.Errorf("two keys verify: %v (%s)", err, auth.Reason(err))
	}
}

func TestImpossibleKeySetsAreRefused(t *testing.T) {
	ec, r := ecKey(t, elliptic.P256()), rsaKey(t, 2048)
	for set, want := range map[string]string{
		`nonsense`:              "jwks: no key set: not JSON",
		`{}`:                    "jwks: no key set: it has no list of keys",
		`{"keys":{}}`:           "jwks: no key set: it has no list of keys",
		`{"keys":[]}`:           "jwks: no usable key in the set",
		`{"keys":[{}]}`:         "jwks: no usable key in the set",
		`{"keys":["x"]}`:        "jwks: no usable key in the set: key 1: is no map",
		`{"keys":[],"keys":[]}`: "jwks: no key set: a member appears twice",
		string(jwks(jwk(ec, map[string]any{"x": "AAAA"}))):                                           "jwks: no usable key in the set: key 1: x and y of P-256 have 32 bytes each",
		string(jwks(jwk(ec, map[string]any{"x": raw64(make([]byte, 32))}))):                          "jwks: no usable key in the set: key 1: x and y are no point of the curve",
		string(jwks(jwk(ec, map[string]any{"alg": "ES384"}))):                                        `jwks: no usable key in the set: key 1: algorithm "ES384" does not go with a key on P-256: want ES256`,
		string(jwks(jwk(ec, map[string]any{"alg": "none"}))):                                         `jwks: no usable key in the set: key 1: algorithm "none" does not go with a key on P-256: want ES256`,
		string(jwks(jwk(r, map[string]any{"e": "Ag"}))):                                              "jwks: no usable key in the set: key 1: e is no exponent",
		string(jwks(jwk(r, map[string]any{"e": "AQ"}))):                                              "jwks: no usable key in the set: key 1: e is no exponent",
		string(jwks(jwk(r, map[string]any{"n": raw64(r.N.Bytes()[:128])}))):                          "jwks: no usable key in the set: key 1: public key: RSA with",
		string(jwks(jwk(r, map[string]any{"n": raw64(append(r.N.Bytes(), make([]byte, 1024)...))}))): "jwks: no usable key in the set: key 1: RSA with",
		string(jwks(jwk(r, map[string]any{"n": "a=="}))):                                             "jwks: no usable key in the set: key 1: n is missing or no base64url",
		string(jwks(jwk(r, map[string]any{"kid": 1}))):                                               "jwks: no usable key in the set: key 1: kid is not a string",
		string(jwks(jwk([]byte("short"), nil))):                                                      "jwks: no usable key in the set: key 1: secret has 5 bytes: HS256 wants at least 32",
		string(jwks(jwk(edKey(t), map[string]any{"x": "AAAA"}))):                                     "jwks: no usable key in the set: key 1: x has 3 bytes, want 32",
		string(jwks(jwk(ec, nil), jwk(r, map[string]any{"e": "Ag"}))):                                "jwks: key 2: e is no exponent",
		string(jwks(strings.Repeat(jwk(ec, nil)+",", 256) + jwk(ec, nil))):                           "jwks: a set of 257 keys: at most 256",
	} {
		_, err := auth.NewJWT(auth.JWTOptions{KeySet: []byte(set)})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %s", set, err, want)
		}
	}
	_, err := auth.NewJWT(auth.JWTOptions{KeySet: jwks(jwk(ec, nil)), Secret: secret})
	if err == nil || err.Error() != "more than one of a secret, a public key, a key set and its URL: want one of them" {
		t.Error(err)
	}
}

// TestAttacksOnKeySets has what a token may try so that another key, or none, verifies it.
func TestAttacksOnKeySets(t *testing.T) {
	r, ec, own := rsaKey(t, 2048), ecKey(t, elliptic.P256()), rsaKey(t, 2048)
	public := publicPEM(t, r.Public())
	v := verifier(t, auth.JWTOptions{KeySet: jwks(jwk(r, map[string]any{"kid": "r", "alg": "RS256"}), jwk(ec, map[string]any{"kid": "e"}))})
	const claims = `{"sub":"root"}`
	ownKey := jwk(own, map[string]any{"kid": "own"})
	attacks := map[string]string{
		"HS256 with the public key":            hs256(public, head("HS256", "r"), claims),
		"HS256 with the modulus":               hs256(r.N.Bytes(), head("HS256", "r"), claims),
		"HS256 with an empty key":              hs256(nil, head("HS256", ""), claims),
		"none":                                 b64(head("none", "r")) + "." + b64(claims) + ".",
		"None without kid":                     b64(head("None", "")) + "." + b64(claims) + ".",
		"the curve's kid on RSA":               signed(t, "RS256", own, head("RS256", "e"), claims),
		"RSA's kid on the curve":               signed(t, "ES256", ecKey(t, elliptic.P256()), head("ES256", "r"), claims),
		"an embedded key":                      signed(t, "RS256", own, `{"alg":"RS256","jwk":`+ownKey+`}`, claims),
		"an embedded key under a known kid":    signed(t, "RS256", own, `{"alg":"RS256","kid":"r","jwk":`+ownKey+`}`, claims),
		"jku":                                  signed(t, "RS256", own, `{"alg":"RS256","kid":"own","jku":"https://evil.example/jwks.json"}`, claims),
		"x5u":                                  signed(t, "RS256", own, `{"alg":"RS256","x5u":"https://evil.example/cert.pem"}`, claims),
		"x5c":                                  signed(t, "RS256", own, `{"alg":"RS256","x5c":["`+base64.StdEncoding.EncodeToString(public)+`"]}`, claims),
		"kid of a path":                        hs256(nil, head("HS256", "../../../../dev/null"), claims),
		"kid of SQL":                           hs256([]byte("x"), head("HS256", "x' UNION SELECT 'x'--"), claims),
		"kid of a command":                     hs256([]byte("x"), head("HS256", "|/bin/true"), claims),
		"kid with a NUL":                       signed(t, "RS256", own, `{"alg":"RS256","kid":"r\u0000"}`, claims),
		"kid twice":                            signed(t, "RS256", r, `{"alg":"RS256","kid":"own","kid":"r"}`, claims),
		"kid a number":                         signed(t, "RS256", r, `{"alg":"RS256","kid":1}`, claims),
		"a signature of zeros":                 b64(head("ES256", "e")) + "." + b64(claims) + "." + raw64(make([]byte, 64)),
		"an empty signature":                   b64(head("ES256", "e")) + "." + b64(claims) + ".",
		"a short signature":                    b64(head("ES256", "e")) + "." + b64(claims) + "." + raw64(make([]byte, 63)),
		"the order for a signature":            b64(head("ES256", "e")) + "." + b64(claims) + "." + raw64(append(elliptic.P256().Params().N.Bytes(), elliptic.P256().Params().N.Bytes()...)),
		"a signature in ASN.1":                 asn1Signature(t, ec, head("ES256", "e"), claims),
		"a token in a token":                   signed(t, "RS256", own, `{"alg":"RS256","kid":"r","cty":"JWT"}`, signed(t, "RS256", r, head("RS256", "r"), claims)),
		"crit that is not known":               signed(t, "RS256", r, `{"alg":"RS256","kid":"r","crit":["exp"],"exp":1}`, claims),
		"claims that are another token":        b64(head("RS256", "r")) + "." + b64(signed(t, "RS256", r, head("RS256", "r"), claims)) + "." + raw64(make([]byte, 256)),
		"PS256 where RS256 is set":             signed(t, "PS256", r, head("PS256", "r"), claims),
		"RS512 where RS256 is set":             signed(t, "RS512", r, head("RS512", "r"), claims),
		"the JSON serialisation":               `{"protected":"` + b64(head("RS256", "r")) + `","payload":"` + b64(claims) + `","signature":""}`,
		"five parts, as encrypted tokens have": signed(t, "RS256", r, head("RS256", "r"), claims) + ".x.y",
	}
	for name, text := range attacks {
		if _, err := v.Verify(text); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.Verify(signed(t, "RS256", r, head("RS256", "r"), claims)); err != nil {
		t.Error("a good token", err)
	}
}

// asn1Signature signs as others than JOSE do.
func asn1Signature(t *testing.T, k *ecdsa.PrivateKey, head, claims string) string {
	t.Helper()
	text := b64(head) + "." + b64(claims)
	h := crypto.SHA256.New()
	h.Write([]byte(text))
	signature, err := ecdsa.SignASN1(rand.Reader, k, h.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + raw64(signature)
}
