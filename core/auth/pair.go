package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"

	"github.com/moongate/moongate/core"
)

// PublicKey checks signatures under the one algorithm that it was made for. It is immutable and safe for concurrent use.
type PublicKey struct{ key *key }

// ParsePublicKey reads a PEM block: PUBLIC KEY, RSA PUBLIC KEY (at least 2048 bits) or CERTIFICATE, whose dates do not matter.
// The algorithm is one of RFC 7518, section 3.1, or EdDSA; "" is RS256 for an RSA key and else the one that goes with the key.
func ParsePublicKey(algorithm string, text []byte) (*PublicKey, error) {
	k, err := publicKey(algorithm, text)
	if err != nil {
		return nil, err
	}
	return &PublicKey{k}, nil
}

// Algorithm is the one algorithm of the key.
func (k *PublicKey) Algorithm() string { return k.key.method.Alg() }

// Verify tells whether a signature is the key's for data. One of ECDSA is either the pair of RFC 7518, section 3.4, or in ASN.1, as
// most tools write it.
func (k *PublicKey) Verify(data string, signature []byte) bool {
	if k.key.verify(data, signature) {
		return true
	}
	method, ok := k.key.method.(*jwt.SigningMethodECDSA)
	if !ok {
		return false
	}
	h := method.Hash.New()
	h.Write(core.Bytes(data))
	return ecdsa.VerifyASN1(k.key.key.(*ecdsa.PublicKey), h.Sum(nil), signature)
}

// PrivateKey signs under the one algorithm that it was made for. It is immutable and safe for concurrent use.
type PrivateKey struct{ key *key }

// ParsePrivateKey reads a PEM block that no passphrase protects: PRIVATE KEY, RSA PRIVATE KEY (at least 2048 bits) or EC PRIVATE
// KEY. The algorithm is as in ParsePublicKey. The error never contains the key.
func ParsePrivateKey(algorithm string, text []byte) (*PrivateKey, error) {
	signer, err := parsePrivate(text)
	if err != nil {
		return nil, err
	}
	public, err := newPublicKey(algorithm, signer.Public())
	if err != nil {
		return nil, err
	}
	return &PrivateKey{&key{method: public.method, key: signer}}, nil
}

// Algorithm is the one algorithm of the key.
func (k *PrivateKey) Algorithm() string { return k.key.method.Alg() }

// Sign signs data. What ECDSA gives is the pair of RFC 7518, section 3.4.
func (k *PrivateKey) Sign(data string) ([]byte, error) {
	signature, err := k.key.method.Sign(data, k.key.key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return signature, nil
}

// parsePrivate reads the one PEM block of a private key.
func parsePrivate(text []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("private key: no PEM block, want one of PRIVATE KEY, RSA PRIVATE KEY, EC PRIVATE KEY")
	}
	if block.Type == "EC PARAMETERS" { // openssl writes them in front of the key, which names its curve too
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("private key: no PEM block after EC PARAMETERS")
		}
	}
	var parsed any
	var err error
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		return nil, errors.New("private key: protected by a passphrase, want one without")
	case block.Type == "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case block.Type == "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case block.Type == "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("a block of type %s, want one of PRIVATE KEY, RSA PRIVATE KEY, EC PRIVATE KEY", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("private key: more than one PEM block, want one key")
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key: a %T signs nothing", parsed)
	}
	return signer, nil
}
