package auth

import (
	"encoding/json"
	"errors"
	"fmt"
)

// SignerOptions say how tokens are signed. One of Secret and PrivateKey is needed.
type SignerOptions struct {
	// Secret is the shared key of HS256 (the default), HS384 or HS512: at least 32, 48 or 64 bytes.
	Secret []byte
	// PrivateKey is a PEM block, as ParsePrivateKey wants it.
	PrivateKey []byte
	// Algorithm is as in JWTOptions.
	Algorithm string
	// KeyID is the head's kid; "" for none.
	KeyID string
}

// Signer signs JSON Web Tokens under one key. It is immutable and safe for concurrent use.
type Signer struct {
	key  *key
	head string // encoded, with its dot
}

// NewSigner makes a signer. The error says which option is impossible and what would be right; it never contains the key.
func NewSigner(o SignerOptions) (*Signer, error) {
	s := &Signer{}
	switch {
	case o.Secret != nil && o.PrivateKey != nil:
		return nil, errors.New("both a secret and a private key: want one of them")
	case o.PrivateKey != nil:
		private, err := ParsePrivateKey(o.Algorithm, o.PrivateKey)
		if err != nil {
			return nil, err
		}
		s.key = private.key
	default:
		k, err := secretKey(o.Algorithm, o.Secret)
		if err != nil {
			return nil, err
		}
		s.key = k
	}
	head := struct {
		Algorithm string `json:"alg"`
		Type      string `json:"typ"`
		KeyID     string `json:"kid,omitempty"`
	}{s.key.method.Alg(), "JWT", o.KeyID}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	s.head = encode(text) + "."
	return s, nil
}

// Algorithm is the one with which the signer signs.
func (s *Signer) Algorithm() string { return s.key.method.Alg() }

// Sign makes a token of claims, which are a JSON object; they are not looked at.
func (s *Signer) Sign(claims []byte) (string, error) {
	text := s.head + encode(claims)
	signature, err := s.key.method.Sign(text, s.key.key)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return text + "." + encode(signature), nil
}
