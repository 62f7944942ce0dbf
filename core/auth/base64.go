package auth

import (
	"encoding/base64"
	"strings"

	"github.com/moongate/moongate/core"
)

var strict = base64.RawURLEncoding.Strict()

// decode appends to dst what base64url text without padding stands for (RFC 7515, section 2). Exactly one text stands for
// given bytes: line breaks and unused bits that are not 0 are refused.
func decode(dst []byte, text string) ([]byte, bool) {
	if strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 {
		return dst, false // the decoder would skip them
	}
	dst, err := strict.AppendDecode(dst, core.Bytes(text))
	return dst, err == nil
}
