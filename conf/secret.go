package conf

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// masked is what stands for a secret wherever one is printed.
const masked = "[secret]"

// Secret is text that no log line, error or dump may show: every verb of fmt, JSON and slog print a mask. Convert it
// with string(s) where it is used.
type Secret string

// Format prints the mask, whatever the verb; an empty secret prints nothing.
func (s Secret) Format(f fmt.State, _ rune) {
	if s != "" {
		io.WriteString(f, masked)
	}
}

// MarshalText gives the mask.
func (s Secret) MarshalText() ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	return []byte(masked), nil
}

// LogValue gives the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// secretWords are the parts of a key that make its value a secret by name.
var secretWords = []string{"secret", "token", "password", "passwd", "passphrase", "private", "credential", "api_key", "apikey"}

// namesSecret tells whether a setting of this name is taken for a secret.
func namesSecret(key string) bool {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
