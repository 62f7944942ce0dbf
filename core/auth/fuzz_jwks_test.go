package auth_test

import (
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/core/auth"
)

// setWriter writes key sets as a program of bytes says: keys of a pool with members changed, left out, doubled, or taken from another key. So
// nearly all that the fuzzer tries is JSON with right base64, and what it changes is what the parser decides by.
type setWriter struct {
	program []byte
	raw     string // JSON that may stand for a value
	pool    []map[string]any
}

// next is a choice below n; 0 when the program is at its end.
func (w *setWriter) next(n int) int {
	if len(w.program) == 0 {
		return 0
	}
	b := w.program[0]
	w.program = w.program[1:]
	return int(b) % n
}

// set writes a set and tells how often each key of the pool stands in it, changed or not.
func (w *setWriter) set() (text []byte, uses []int) {
	uses = make([]int, len(w.pool))
	var list []string
	for range 1 + w.next(4) {
		from := w.next(len(w.pool))
		uses[from]++
		list = append(list, w.key(w.pool[from]))
	}
	return jwks(list...), uses
}

var (
	fuzzAlgs  = []any{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519", "HS256", "HS384", "HS512", "none", "RSA-OAEP", ""}
	fuzzNames = []string{"kty", "crv", "n", "e", "x", "y", "k", "alg", "use", "key_ops", "kid", "d", "p", "x5c"}
	fuzzOther = []any{nil, 1, true, "", "!", "AQ", "AQAB", "P-256", "P-384", "P-521", "Ed25519", "secp256k1", "RSA", "EC", "OKP", "oct", "sig", "enc", []any{}, []any{"verify"},
		[]any{"sign"}, []any{1}, map[string]any{}, "a", "b"}
)

// key writes one key of the pool after some changes.
func (w *setWriter) key(of map[string]any) string {
	k := maps.Clone(of)
	double := ""
	for range w.next(4) {
		name := fuzzNames[w.next(len(fuzzNames))]
		switch w.next(8) {
		case 0:
			k["alg"] = fuzzAlgs[w.next(len(fuzzAlgs))]
		case 1:
			k["kid"] = fuzzOther[w.next(len(fuzzOther))]
		case 2:
			k[name] = fuzzOther[w.next(len(fuzzOther))]
		case 3:
			delete(k, name)
		case 4:
			k[name] = w.pool[w.next(len(w.pool))][name]
		case 5:
			k[name] = w.torn(k[name])
		case 6:
			double = name
		case 7:
			if json.Valid([]byte(w.raw)) {
				k[name] = json.RawMessage(w.raw)
			}
		}
	}
	var members []string
	for _, name := range slices.Sorted(maps.Keys(k)) {
		value, err := json.Marshal(k[name])
		if err != nil {
			panic(err)
		}
		members = append(members, fmt.Sprintf("%q:%s", name, value))
		if name == double {
			members = append(members, members[len(members)-1])
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// torn is text with a letter more, less or changed.
func (w *setWriter) torn(value any) any {
	text, ok := value.(string)
	if !ok || text == "" {
		return value
	}
	at := w.next(len(text))
	switch w.next(4) {
	case 0:
		return text[:at]
	case 1:
		return text + text[:at]
	case 2:
		return text + "="
	}
	return text[:at] + string("Aa0-_"[w.next(5)]) + text[at+1:]
}

// FuzzKeySet: no set brings the parser down. What it makes of one verifies what the keys in it signed, each under one algorithm, and
// nothing else: no empty signature, no other's key, no public key for a secret.
func FuzzKeySet(f *testing.F) {
	r, e, e3, ed, shared := rsaKey(f, 2048), ecKey(f, elliptic.P256()), ecKey(f, elliptic.P384()), edKey(f), []byte(strings.Repeat("k", 64))
	keys := []any{r, e, e3, ed, shared}
	algs := [][]string{{"RS256", "PS256"}, {"ES256"}, {"ES384"}, {"EdDSA"}, {"HS256", "HS512"}}
	type attempt struct {
		key  int // of keys; -1: nobody's
		text string
	}
	var attempts []attempt
	for i, k := range keys {
		for _, alg := range algs[i] {
			for _, kid := range []string{"", "a"} {
				attempts = append(attempts, attempt{i, signed(f, alg, k, head(alg, kid), `{}`)}, attempt{-1, b64(head(alg, kid)) + "." + b64(`{}`) + "."})
			}
		}
	}
	other, point := ecKey(f, elliptic.P256()), must(e.PublicKey.Bytes())
	attempts = append(attempts, attempt{-1, signed(f, "ES256", other, head("ES256", ""), `{}`)}, attempt{-1, b64(head("none", "")) + "." + b64(`{}`) + "."},
		attempt{-1, hs256(point, head("HS256", ""), `{}`)}, attempt{-1, hs256(r.N.Bytes(), head("HS256", ""), `{}`)}, attempt{-1, hs256(publicPEM(f, &r.PublicKey), head("HS256", ""), `{}`)},
		attempt{-1, hs256(ed.Public().(ed25519.PublicKey), head("HS256", ""), `{}`)})
	pool := make([]map[string]any, len(keys))
	for i, k := range keys {
		if err := json.Unmarshal([]byte(jwk(k, map[string]any{"alg": algs[i][0]})), &pool[i]); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte{0, 0, 0}, "", "")
	f.Add([]byte{3, 0, 0, 1, 0, 2, 0, 3, 0}, "1", "")
	f.Add([]byte{1, 4, 0, 0, 2, 0, 0, 3, 1, 4}, `"x"`, "RS256")
	f.Add([]byte{0, 1, 1, 4, 5, 7, 2}, `[]`, "ES256")
	f.Fuzz(func(t *testing.T, program []byte, raw, algorithm string) {
		w := &setWriter{program: program, raw: raw, pool: pool}
		text, uses := w.set()
		v, err := auth.NewJWT(auth.JWTOptions{KeySet: text, Algorithm: algorithm, Clock: at(now)})
		if err != nil {
			return
		}
		passed := map[int]map[string]bool{}
		for _, a := range attempts {
			if _, err := v.Verify(a.text); err != nil {
				continue
			}
			if a.key < 0 {
				t.Fatalf("%s lets in %s", text, a.text)
			}
			if passed[a.key] == nil {
				passed[a.key] = map[string]bool{}
			}
			passed[a.key][a.text[:strings.IndexByte(a.text, '.')]] = true
		}
		for i, heads := range passed {
			if most := 2 * uses[i]; len(heads) > most { // with and without a kid
				t.Fatalf("%s: the key %d, which stands there %d times, is good for %d heads", text, i, uses[i], len(heads))
			}
		}
	})
}
