package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Sign makes an HS256 token with the claims, and with exp unless expires is zero. The secret is at least 32 bytes; claims are
// what encoding/json takes. The map is not changed.
func Sign(secret []byte, claims map[string]any, expires time.Time) (string, error) {
	k, err := secretKey("", secret)
	if err != nil {
		return "", err
	}
	all := maps.Clone(claims)
	if all == nil {
		all = make(map[string]any)
	}
	if !expires.IsZero() {
		all["exp"] = expires.Unix()
	}
	payload, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("claims: %w", err)
	}
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(payload)
	signature, err := jwt.SigningMethodHS256.Sign(text, k.key)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return text + "." + encode(signature), nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
