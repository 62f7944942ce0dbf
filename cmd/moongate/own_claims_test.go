package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// bearer is a token with what it says.
type bearer struct {
	text           string
	user, role, in string
	key            int
}

// signedBy is a token of one of the keys.
func signedBy(keys []ed25519.PrivateKey, key int, claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	text := part(fmt.Appendf(nil, `{"alg":"EdDSA","kid":"k%d"}`, key)) + "." + part([]byte(claims))
	return text + "." + part(ed25519.Sign(keys[key], []byte(text)))
}

// keySet is the public halves of some keys.
func keySet(keys []ed25519.PrivateKey, some ...int) string {
	var list []string
	for _, i := range some {
		list = append(list, fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"k%d","x":%q}`, i, base64.RawURLEncoding.EncodeToString(keys[i].Public().(ed25519.PublicKey))))
	}
	return `{"keys":[` + strings.Join(list, ",") + `]}`
}

// TestNobodyIsToldAnothersClaims: thousands of tokens at once, many of one user with other claims, while keys rotate and the headers that claims go
// into change places. A request may be refused when its key has just gone; it is never taken for another, nor told half of one setting.
func TestNobodyIsToldAnothersClaims(t *testing.T) {
	var keys []ed25519.PrivateKey
	for i := range 2 {
		keys = append(keys, ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+i)), ed25519.SeedSize))))
	}
	var tokens []bearer
	for i := range 2000 {
		b := bearer{user: fmt.Sprint("user-", i/20), role: fmt.Sprint("role-", i), in: fmt.Sprint("org-", i), key: i % 2}
		claims := fmt.Sprintf(`{"sub":%q,"role":%q,"org":{"id":%q},"exp":4000000000}`, b.user, b.role, b.in)
		if i%7 == 0 { // the claim is not there: nor is the header, whoever was told of before
			b.role, claims = "", fmt.Sprintf(`{"sub":%q,"org":{"id":%q},"exp":4000000000}`, b.user, b.in)
		}
		b.text = signedBy(keys, b.key, claims)
		tokens = append(tokens, b)
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header["X-User-Id"], r.Header["X-User-Role"], r.Header["X-Org"], r.Header.Get("X-Asked"))
	}))
	t.Cleanup(up.Close)
	script, err := os.ReadFile("../../scripts/jwt.lua")
	if err != nil {
		t.Fatal(err)
	}
	configured := func(role, org string) string {
		return "[log]\naccess = \"off\"\n[admin]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"u\"\nendpoints = [\"" + up.URL + "\"]\ntimeouts.connect = \"10s\"\n" +
			"[filter.jwt]\njwks = \"${file:keys.json}\"\nheaders = { X-User-Role = \"" + role + "\", X-Org = \"" + org + "\" }\n" + everyPath
	}
	w := openWhole(t, map[string]string{"scripts/jwt.lua": string(script), "keys.json": keySet(keys, 0, 1), "gateway.toml": configured("role", "org.id")})
	list := func(text string) string {
		if text == "" {
			return "[]"
		}
		return "[" + text + "]"
	}
	var let, refused atomic.Int64
	var clients sync.WaitGroup
	over := make(chan struct{})
	const each = 150
	for c := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 7))
			tr := new(http.Transport)
			defer tr.CloseIdleConnections()
			client := &http.Client{Transport: tr, Timeout: time.Minute}
			for n := range each {
				b := &tokens[random.IntN(len(tokens))]
				r, err := http.NewRequest("GET", w.path("/"), nil)
				if err != nil {
					t.Error(err)
					return
				}
				asked := fmt.Sprint(c, ".", n)
				r.Header.Set("Authorization", "Bearer "+b.text)
				r.Header.Set("X-Asked", asked)
				resp, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch got := string(text); {
				case resp.StatusCode == 200 && (got == list(b.user)+" "+list(b.role)+" "+list(b.in)+asked || got == list(b.user)+" "+list(b.in)+" "+list(b.role)+asked):
					let.Add(1)
				case resp.StatusCode == 401 && b.key == 1 && strings.Contains(got, "token invalid"):
					refused.Add(1)
				default:
					t.Errorf("%d %s for %s, %s, %s", resp.StatusCode, got, b.user, b.role, b.in)
				}
			}
		})
	}
	go func() {
		clients.Wait()
		close(over)
	}()
	for n := 1; ; n++ {
		select {
		case <-over:
			if t.Logf("%d reloads, %d let in, %d refused", n, let.Load(), refused.Load()); let.Load() < each || n < 3 {
				t.Error("too few for a storm")
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
		if n%3 == 0 {
			w.write("keys.json", keySet(keys, 0))
		} else {
			w.write("keys.json", keySet(keys, 0, 1))
		}
		if n%2 == 0 {
			w.write("gateway.toml", configured("role", "org.id"))
		} else {
			w.write("gateway.toml", configured("org.id", "role"))
		}
		w.mustReload()
	}
}
