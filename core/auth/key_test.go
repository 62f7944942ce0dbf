package auth_test

import (
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/moongate/moongate/core/auth"
)

func TestEveryAlgorithmVerifiesItsTokensAndNoOthers(t *testing.T) {
	long := []byte(strings.Repeat("s", 64))
	rsa1, p256, p384, p521, ed := rsaKey(t, 2048), ecKey(t, elliptic.P256()), ecKey(t, elliptic.P384()), ecKey(t, elliptic.P521()), edKey(t)
	keys := []struct {
		algorithm       string
		private, public any
	}{
		{"HS256", long, nil}, {"HS384", long, nil}, {"HS512", long, nil},
		{"RS256", rsa1, rsa1.Public()}, {"RS384", rsa1, rsa1.Public()}, {"RS512", rsa1, rsa1.Public()},
		{"PS256", rsa1, rsa1.Public()}, {"PS384", rsa1, rsa1.Public()}, {"PS512", rsa1, rsa1.Public()},
		{"ES256", p256, p256.Public()}, {"ES384", p384, p384.Public()}, {"ES512", p521, p521.Public()},
		{"EdDSA", ed, ed.Public()},
	}
	for _, k := range keys {
		o := auth.JWTOptions{Algorithm: k.algorithm}
		if k.public == nil {
			o.Secret = long
		} else {
			o.PublicKey = publicPEM(t, k.public)
		}
		v := verifier(t, o)
		for _, signer := range keys {
			text := b64(fmt.Sprintf(`{"alg":%q}`, signer.algorithm)) + "." + b64(`{"sub":"tom"}`)
			signature, err := jwt.GetSigningMethod(signer.algorithm).Sign(text, signer.private)
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Verify(text + "." + base64.RawURLEncoding.EncodeToString(signature))
			if (err == nil) != (signer.algorithm == k.algorithm) {
				t.Errorf("%s verifies %s: %v", k.algorithm, signer.algorithm, err)
			}
			broken := append([]byte(nil), signature...)
			broken[len(broken)/2] ^= 1
			if _, err = v.Verify(text + "." + base64.RawURLEncoding.EncodeToString(broken)); !errors.Is(err, auth.ErrInvalid) {
				t.Errorf("%s with a broken signature: %v", k.algorithm, err)
			}
		}
	}
}

func TestPSSWithASaltOfAnotherLengthIsRefused(t *testing.T) {
	k := rsaKey(t, 2048)
	v := verifier(t, auth.JWTOptions{Algorithm: "PS256", PublicKey: publicPEM(t, k.Public())})
	text := b64(`{"alg":"PS256"}`) + "." + b64(`{}`)
	sum := sha256.Sum256([]byte(text))
	for salt, good := range map[int]bool{sha256.Size: true, 0: false, 8: false, 64: false} {
		options := &rsa.PSSOptions{SaltLength: salt, Hash: crypto.SHA256}
		if salt == 0 {
			options.SaltLength = rsa.PSSSaltLengthAuto // the longest, when signing
		}
		signature, err := rsa.SignPSS(rand.Reader, k, crypto.SHA256, sum[:], options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(text + "." + base64.RawURLEncoding.EncodeToString(signature)); (err == nil) != good {
			t.Errorf("salt of %d bytes: %v", salt, err)
		}
	}
}

func TestAlgorithmDefaultsToTheKeys(t *testing.T) {
	r := rsaKey(t, 2048)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, r.Public(), r)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]auth.JWTOptions{
		"HS256": {Secret: secret},
		"RS256": {PublicKey: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})},
		"RS512": {Algorithm: "RS512", PublicKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&r.PublicKey)})},
		"ES384": {PublicKey: publicPEM(t, ecKey(t, elliptic.P384()).Public())},
		"EdDSA": {PublicKey: publicPEM(t, edKey(t).Public())},
	} {
		if got := verifier(t, o).Algorithm(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestImpossibleKeysAreRefused(t *testing.T) {
	r := rsaKey(t, 2048)
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(r)})
	public := publicPEM(t, r.Public())
	t.Setenv("GODEBUG", "rsa1024min=0")
	short := publicPEM(t, rsaKey(t, 1024).Public())
	tests := []struct {
		o    auth.JWTOptions
		want string
	}{
		{auth.JWTOptions{}, "secret has 0 bytes: HS256 wants at least 32"},
		{auth.JWTOptions{Secret: []byte{}}, "secret has 0 bytes: HS256 wants at least 32"},
		{auth.JWTOptions{Secret: secret[:31]}, "secret has 31 bytes: HS256 wants at least 32"},
		{auth.JWTOptions{Secret: secret, Algorithm: "HS384"}, "secret has 32 bytes: HS384 wants at least 48"},
		{auth.JWTOptions{Secret: make([]byte, 63), Algorithm: "HS512"}, "secret has 63 bytes: HS512 wants at least 64"},
		{auth.JWTOptions{Secret: secret, Algorithm: "none"}, `algorithm "none" does not go with a secret: want HS256, HS384, HS512`},
		{auth.JWTOptions{Secret: secret, Algorithm: "RS256"}, `algorithm "RS256" does not go with a secret: want HS256, HS384, HS512`},
		{auth.JWTOptions{Secret: public}, "secret is a PEM block: want a public key in its place"},
		{auth.JWTOptions{Secret: secret, PublicKey: public}, "both a secret and a public key: want one of them"},
		{auth.JWTOptions{PublicKey: public, Algorithm: "HS256"}, `algorithm "HS256" does not go with an RSA key: want RS256, RS384, RS512, PS256, PS384, PS512`},
		{auth.JWTOptions{PublicKey: publicPEM(t, ecKey(t, elliptic.P256()).Public()), Algorithm: "ES384"}, `algorithm "ES384" does not go with a key on P-256: want ES256`},
		{auth.JWTOptions{PublicKey: publicPEM(t, ecKey(t, elliptic.P224()).Public())}, "a key on P-224 verifies no token: want RSA, P-256, P-384, P-521 or Ed25519"},
		{auth.JWTOptions{PublicKey: short}, "public key: RSA with 1024 bits, want at least 2048"},
		{auth.JWTOptions{PublicKey: private}, "public key: a block of type RSA PRIVATE KEY, want one of PUBLIC KEY, RSA PUBLIC KEY, CERTIFICATE"},
		{auth.JWTOptions{PublicKey: []byte("nonsense")}, "public key: no PEM block, want one of PUBLIC KEY, RSA PUBLIC KEY, CERTIFICATE"},
		{auth.JWTOptions{PublicKey: append(public, public...)}, "public key: more than one PEM block, want one key"},
		{auth.JWTOptions{Secret: secret, Leeway: -1}, "leeway -1ns: want 0 or more"},
	}
	for _, test := range tests {
		_, err := auth.NewJWT(test.o)
		if err == nil || err.Error() != test.want {
			t.Errorf("got error %v, want %s", err, test.want)
		}
	}
}

// TestTokenNeverChoosesItsAlgorithm has the attacks that many libraries once let through (RFC 8725, section 2.1).
func TestTokenNeverChoosesItsAlgorithm(t *testing.T) {
	r := rsaKey(t, 2048)
	public := publicPEM(t, r.Public())
	v := verifier(t, auth.JWTOptions{PublicKey: public})
	attacks := map[string]string{
		"HS256 keyed with the PEM":                       hs256(public, `{"alg":"HS256"}`, `{"sub":"tom"}`),
		"HS256 keyed with the PEM without its last line": hs256(public[:len(public)-1], `{"alg":"HS256"}`, `{"sub":"tom"}`),
		"HS256 keyed with the DER":                       hs256(x509.MarshalPKCS1PublicKey(&r.PublicKey), `{"alg":"HS256"}`, `{"sub":"tom"}`),
		"alg absent":                                     hs256(public, `{}`, `{"sub":"tom"}`),
		"alg null":                                       hs256(public, `{"alg":null}`, `{"sub":"tom"}`),
		"alg a list":                                     hs256(public, `{"alg":["RS256"]}`, `{"sub":"tom"}`),
		"alg twice":                                      hs256(public, `{"alg":"RS256","alg":"HS256"}`, `{"sub":"tom"}`),
	}
	for _, alg := range []string{"none", "None", "nOnE", "NONE", "", "rs256", "RS256 "} {
		text := b64(fmt.Sprintf(`{"alg":%q}`, alg)) + "." + b64(`{"sub":"tom"}`)
		attacks["alg "+alg+", empty signature"] = text + "."
		attacks["alg "+alg+", no signature"] = text
	}
	for name, text := range attacks {
		if _, err := v.Verify(text); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
