package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
)

// jwkFields reads the members of a key; the first one that is wrong is noted.
type jwkFields struct {
	v        Value
	material string // of all that was read by bytes
	err      error
}

// text is a member that is a string, "" when it is absent.
func (f *jwkFields) text(name string) string {
	value, ok := f.v.Get(name)
	if ok && value.Kind() != String && f.err == nil {
		f.err = fmt.Errorf("%s is not a string", name)
	}
	return value.Text()
}

// verifies tells whether key_ops (section 4.3) lets the key verify.
func (f *jwkFields) verifies() bool {
	ops, ok := f.v.Get("key_ops")
	return !ok || ops.some(func(op string) bool { return op == "verify" })
}

// bytes is a member that is base64url of at least one byte.
func (f *jwkFields) bytes(name string) []byte {
	text := f.text(name)
	b, ok := decode(nil, text)
	if (!ok || len(b) == 0) && f.err == nil {
		f.err = fmt.Errorf("%s is missing or no base64url", name)
	}
	f.material += name + "=" + text + "\x00"
	return b
}

// rsa reads a key of RFC 7518, section 6.3.1.
func (f *jwkFields) rsa(alg string) (*key, error) {
	n, e := new(big.Int).SetBytes(f.bytes("n")), new(big.Int).SetBytes(f.bytes("e"))
	switch {
	case f.err != nil:
		return nil, nil
	case n.BitLen() > maxRSA:
		return nil, fmt.Errorf("RSA with %d bits: at most %d", n.BitLen(), maxRSA)
	case !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 || e.Bit(0) == 0:
		return nil, errors.New("e is no exponent")
	}
	return newPublicKey(alg, &rsa.PublicKey{N: n, E: int(e.Int64())})
}

// maxRSA bounds what verifying a signature may cost.
const maxRSA = 8192

// ec reads a key of RFC 7518, section 6.2.1. One on a curve that is not known here is not for us.
func (f *jwkFields) ec(alg string) (*key, error) {
	curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[f.text("crv")]
	if curve == nil {
		return nil, nil
	}
	x, y := f.bytes("x"), f.bytes("y")
	size := (curve.Params().BitSize + 7) / 8
	if f.err == nil && (len(x) != size || len(y) != size) {
		return nil, fmt.Errorf("x and y of %s have %d bytes each", curve.Params().Name, size)
	}
	if f.err != nil {
		return nil, nil
	}
	public, err := ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, errors.New("x and y are no point of the curve")
	}
	return newPublicKey(alg, public)
}

// okp reads a key of RFC 8037, section 2.
func (f *jwkFields) okp(alg string) (*key, error) {
	if f.text("crv") != "Ed25519" {
		return nil, nil
	}
	x := f.bytes("x")
	if f.err == nil && len(x) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("x has %d bytes, want %d", len(x), ed25519.PublicKeySize)
	}
	if alg == "Ed25519" { // RFC 9864 names the algorithm in full
		alg = ""
	}
	return newPublicKey(alg, ed25519.PublicKey(x))
}
