package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeKeySet makes the configuration of the jwks case, which is that of the full case with a set of public keys in place of the secret, and the
// token that is let in by it.
func (b *bench) writeKeySet() error {
	full := filepath.Join("conf/examples", "bench-full")
	text, err := os.ReadFile(filepath.Join(full, "gateway.toml"))
	if err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{{"kty": "RSA", "kid": "bench", "alg": "RS256", "use": "sig",
		"n": segment(key.N.Bytes()), "e": segment(big.NewInt(int64(key.E)).Bytes())}}})
	if err != nil {
		return err
	}
	before := fmt.Sprintf("secret = %q", secret)
	if !strings.Contains(string(text), before) {
		return fmt.Errorf("%s does not say %s", full, before)
	}
	scripts, err := filepath.Abs(filepath.Join(full, "scripts"))
	if err != nil {
		return err
	}
	own := filepath.Join(b.dir, "bench-jwks")
	if err := os.Mkdir(own, 0o755); err != nil {
		return err
	}
	text = []byte(strings.Replace(string(text), before, fmt.Sprintf("jwks = '%s'", set), 1))
	b.keyToken, err = signed(key, map[string]any{"sub": "tom", "role": "admin", "iat": time.Now().Unix(), "exp": time.Now().Add(24 * time.Hour).Unix()})
	return errors.Join(err, os.Symlink(scripts, filepath.Join(own, "scripts")), os.WriteFile(filepath.Join(own, "gateway.toml"), text, 0o644))
}

// signed is a token with claims by RS256 (RFC 7515 section 3.1).
func signed(key *rsa.PrivateKey, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := segment([]byte(`{"alg":"RS256","typ":"JWT","kid":"bench"}`)) + "." + segment(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + segment(signature), err
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
