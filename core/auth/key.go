package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/golang-jwt/jwt/v5"

	"github.com/moongate/moongate/core"
)

// minRSA is the shortest RSA key in bits (RFC 7518, sections 3.3 and 3.5).
const minRSA = 2048

// key is a key with the one algorithm it may be used with (RFC 8725, section 3.1).
type key struct {
	method jwt.SigningMethod
	key    any
	macs   *sync.Pool // of *mac, for a shared secret

	// Of a key in a set:
	kid  string            // "" when it has none
	id   [sha256.Size]byte // tells apart keys that differ in anything
	gone atomic.Bool       // the set has it no longer: what was verified with it counts no more
}

// mac is a keyed hash that is used again: keying it costs more than hashing a token (BenchmarkVerifyHS256).
type mac struct {
	hash.Hash
	sum []byte
}

// verify says whether the signature is the key's for that text.
func (k *key) verify(text string, signature []byte) bool {
	if k.macs == nil {
		return k.method.Verify(text, signature, k.key) == nil
	}
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	m.Reset()
	m.Write(core.Bytes(text))
	m.sum = m.Sum(m.sum[:0])
	return hmac.Equal(signature, m.sum)
}

// What each kind of key can do, the first one by default.
var (
	hmacMethods = []jwt.SigningMethod{jwt.SigningMethodHS256, jwt.SigningMethodHS384, jwt.SigningMethodHS512}
	rsaMethods  = []jwt.SigningMethod{
		jwt.SigningMethodRS256, jwt.SigningMethodRS384, jwt.SigningMethodRS512,
		pss(jwt.SigningMethodPS256), pss(jwt.SigningMethodPS384), pss(jwt.SigningMethodPS512),
	}
	curveMethods = map[elliptic.Curve]jwt.SigningMethod{
		elliptic.P256(): jwt.SigningMethodES256,
		elliptic.P384(): jwt.SigningMethodES384,
		elliptic.P521(): jwt.SigningMethodES512,
	}
)

// pss is the method with the salt that RFC 7518, section 3.5, asks for: golang-jwt's own takes one of any length.
func pss(m *jwt.SigningMethodRSAPSS) jwt.SigningMethod {
	return &jwt.SigningMethodRSAPSS{SigningMethodRSA: m.SigningMethodRSA, Options: m.Options}
}

// secretKey checks a shared secret: it is at least as long as the hash (RFC 7518, section 3.2).
func secretKey(algorithm string, secret []byte) (*key, error) {
	if bytes.Contains(secret, []byte("-----BEGIN ")) {
		return nil, errors.New("secret is a PEM block: want a public key in its place")
	}
	method, err := choose(algorithm, "a secret", hmacMethods)
	if err != nil {
		return nil, err
	}
	algo := method.(*jwt.SigningMethodHMAC).Hash
	if len(secret) < algo.Size() {
		return nil, fmt.Errorf("secret has %d bytes: %s wants at least %d", len(secret), method.Alg(), algo.Size())
	}
	secret = bytes.Clone(secret)
	macs := &sync.Pool{New: func() any { return &mac{Hash: hmac.New(algo.New, secret)} }}
	return &key{method: method, key: secret, macs: macs}, nil
}

// publicKey checks a PEM public key or certificate.
func publicKey(algorithm string, text []byte) (*key, error) {
	public, err := parsePublic(text)
	if err != nil {
		return nil, err
	}
	return newPublicKey(algorithm, public)
}

// newPublicKey checks a public key of any kind.
func newPublicKey(algorithm string, public any) (*key, error) {
	var kind string
	var methods []jwt.SigningMethod
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA {
			return nil, fmt.Errorf("public key: RSA with %d bits, want at least %d", bits, minRSA)
		}
		kind, methods = "an RSA key", rsaMethods
	case *ecdsa.PublicKey:
		kind = "a key on " + k.Params().Name
		if m := curveMethods[k.Curve]; m != nil {
			methods = []jwt.SigningMethod{m}
		}
	case ed25519.PublicKey:
		kind, methods = "an Ed25519 key", []jwt.SigningMethod{jwt.SigningMethodEdDSA}
	default:
		kind = fmt.Sprintf("a %T", public)
	}
	method, err := choose(algorithm, kind, methods)
	if err != nil {
		return nil, err
	}
	return &key{method: method, key: public}, nil
}

// choose finds the named algorithm among those a kind of key is good for; "" is the first of them.
func choose(algorithm, kind string, methods []jwt.SigningMethod) (jwt.SigningMethod, error) {
	if len(methods) == 0 {
		return nil, fmt.Errorf("%s verifies no token: want RSA, P-256, P-384, P-521 or Ed25519", kind)
	}
	if algorithm == "" {
		return methods[0], nil
	}
	var names []string
	for _, m := range methods {
		if m.Alg() == algorithm {
			return m, nil
		}
		names = append(names, m.Alg())
	}
	return nil, misfit(fmt.Sprintf("algorithm %q does not go with %s: want %s", algorithm, kind, strings.Join(names, ", ")))
}

// misfit is the error of an algorithm that a key is not good for.
type misfit string

func (m misfit) Error() string { return string(m) }

// parsePublic reads the first PEM block: a key alone, or a certificate, which its chain may follow.
func parsePublic(text []byte) (any, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("public key: no PEM block, want one of PUBLIC KEY, RSA PUBLIC KEY, CERTIFICATE")
	}
	var public any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			return certificate.PublicKey, nil
		}
	default:
		err = fmt.Errorf("a block of type %s, want one of PUBLIC KEY, RSA PUBLIC KEY, CERTIFICATE", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("public key: more than one PEM block, want one key")
	}
	return public, nil
}
