package auth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"
	"time"
	"unsafe"

	"github.com/moongate/moongate/core/auth"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// now is the time of every test: a whole second.
var now = time.Unix(1_700_000_000, 0)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func verifier(t testing.TB, o auth.JWTOptions) *auth.JWT {
	t.Helper()
	if o.Secret == nil && o.PublicKey == nil && o.KeySet == nil && o.Keys == nil {
		o.Secret = secret
	}
	if o.Clock == nil {
		o.Clock = at(now)
	}
	v, err := auth.NewJWT(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// hs256 signs a head and claims as they are written.
func hs256(key []byte, head, claims string) string {
	text := b64(head) + "." + b64(claims)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func token(claims string) string { return hs256(secret, `{"alg":"HS256","typ":"JWT"}`, claims) }

func publicPEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func edKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// view is a string over a buffer, as a caller makes it that does not want to copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
