package luaapi

import (
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// masker hides what no log line may show: the values of settings of the type secret, wherever they stand in a text, and fields by their
// name. Names compare without case, `-` and `_` are the same.
type masker struct {
	names map[string]bool

	mu      sync.RWMutex
	secrets []string
}

const (
	maskText   = "***"
	minSecret  = 6 // shorter ones would black out ordinary words
	maxSecrets = 1024
)

// maskedNames are always masked; [log] mask adds to them.
var maskedNames = []string{"authorization", "proxy_authorization", "cookie", "set_cookie", "cookies", "password", "passwd", "passphrase", "secret", "client_secret",
	"token", "access_token", "refresh_token", "id_token", "bearer", "api_key", "apikey", "x_api_key", "private_key", "credentials"}

func newMasker(names []string) *masker {
	m := &masker{names: map[string]bool{}}
	for _, name := range append(slices.Clone(maskedNames), names...) {
		m.names[strings.ReplaceAll(strings.ToLower(name), "-", "_")] = true
	}
	return m
}

// hides tells whether a field of that name is masked.
func (m *masker) hides(name string) bool {
	var buf [64]byte
	if m == nil || len(name) > len(buf) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-':
			c = '_'
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return m.names[string(buf[:len(name)])]
}

// text gives a text with all secrets masked.
func (m *masker) text(s string) string {
	if m == nil {
		return s
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, secret := range m.secrets {
		if strings.Contains(s, secret) {
			s = strings.ReplaceAll(s, secret, maskText)
		}
	}
	return s
}

// learn makes the strings within a setting's value secrets.
func (m *masker) learn(v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(v) >= minSecret && len(m.secrets) < maxSecrets && !slices.Contains(m.secrets, string(v)) {
			m.secrets = append(m.secrets, string(v))
			slices.SortFunc(m.secrets, func(x, y string) int { return len(y) - len(x) }) // one may be a part of another
		}
	case *lua.LTable:
		for key, item := v.Next(lua.LNil); key != lua.LNil; key, item = v.Next(key) {
			m.learn(item)
		}
	}
}

// holdsSecrets tells whether a setting's value, or what is in it, is secret.
func (st *setting) holdsSecrets() bool {
	return st.kind == "secret" || st.item != nil && st.item.holdsSecrets()
}
