package auth

import (
	"strings"

	"github.com/moongate/moongate/core"
)

// authParams reads the parameters behind a scheme (RFC 9110, section 11.2): names in lower case, each once.
func authParams(text string) (map[string]string, error) {
	params := map[string]string{}
	for text = strings.Trim(text, " \t"); text != ""; {
		name, rest, ok := strings.Cut(text, "=")
		name = strings.ToLower(strings.TrimRight(name, " \t"))
		if !ok || !core.IsToken(core.Bytes(name)) {
			return nil, invalid("Authorization is malformed")
		}
		value, rest, ok := authValue(strings.TrimLeft(rest, " \t"))
		if !ok {
			return nil, invalid("Authorization is malformed")
		}
		if _, twice := params[name]; twice {
			return nil, invalid("Authorization has a parameter twice")
		}
		params[name] = value
		if text = strings.TrimLeft(rest, " \t"); text == "" {
			return params, nil
		}
		if text[0] != ',' {
			return nil, invalid("Authorization is malformed")
		}
		if text = strings.TrimLeft(text[1:], " \t"); text == "" {
			return nil, invalid("Authorization is malformed")
		}
	}
	return params, nil
}

// authValue takes a token or a quoted string from the front.
func authValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := 0
		for end < len(text) && core.IsTokenByte(text[end]) {
			end++
		}
		return text[:end], text[end:], end > 0
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:], true
		case text[i] == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}

func containsFold(list []string, name string) bool {
	for _, item := range list {
		if strings.EqualFold(item, name) {
			return true
		}
	}
	return false
}
