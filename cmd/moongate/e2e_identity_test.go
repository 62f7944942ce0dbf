package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moongate/moongate/core/auth/ldaptest"
)

// provider is an identity provider that a script started: it publishes keys, signs tokens, knows opaque ones and decides about requests.
type provider struct {
	server *httptest.Server

	mu      sync.Mutex
	keys    []*ecdsa.PrivateKey // the newest last
	first   int                 // kid of keys[0]
	trouble string
	fetches int
	asked   int
}

func providerCommand(ts *testscript.TestScript, neg bool, args []string) {
	w := worldOf(ts)
	if neg || len(args) == 0 || args[0] != "start" && w.provider == nil {
		ts.Fatalf("usage: provider start|rotate|forget|trouble|token|fetches|asked [...]")
	}
	p := w.provider
	switch rest := args[1:]; args[0] {
	case "start":
		w.provider = startProvider()
		ts.Setenv("PROVIDER", w.provider.server.URL)
	case "rotate":
		p.rotate()
	case "forget":
		p.mu.Lock()
		p.first += len(p.keys) - 1
		p.keys = p.keys[len(p.keys)-1:]
		p.mu.Unlock()
	case "trouble":
		p.mu.Lock()
		p.trouble = rest[0]
		p.mu.Unlock()
	case "token":
		ts.Setenv(rest[0], p.token(ts, rest[1:]))
	case "fetches", "asked":
		want, err := strconv.Atoi(rest[0])
		ts.Check(err)
		count := func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			if args[0] == "asked" {
				return p.asked
			}
			return p.fetches
		}
		until(func() bool { return count() >= want })
		if got := count(); got != want {
			ts.Fatalf("%s: %d, want %d", args[0], got, want)
		}
	default:
		ts.Fatalf("provider %s: unknown", args[0])
	}
}

func startProvider() *provider {
	p := &provider{trouble: "none"}
	p.rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, p.server.URL, p.server.URL+"/jwks.json")
	})
	mux.HandleFunc("GET /jwks.json", p.serveKeys)
	mux.HandleFunc("POST /introspect", p.introspect)
	mux.HandleFunc("GET /check", p.check)
	p.server = httptest.NewUnstartedServer(mux)
	p.server.Start() // whose address may have been somebody else's a moment ago: requests may come at once
	return p
}

func (p *provider) rotate() {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	p.keys = append(p.keys, k)
	p.mu.Unlock()
}

func (p *provider) serveKeys(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.fetches++
	trouble := p.trouble
	var keys []map[string]string
	for i, k := range p.keys {
		point, _ := k.PublicKey.Bytes()
		enc := base64.RawURLEncoding.EncodeToString
		keys = append(keys, map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "kid": fmt.Sprint(p.first + i), "x": enc(point[1:33]), "y": enc(point[33:])})
	}
	p.mu.Unlock()
	switch trouble {
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
	case "html":
		io.WriteString(w, "<html>sorry</html>")
	case "empty":
	case "hang":
		<-r.Context().Done()
	default:
		json.NewEncoder(w).Encode(map[string]any{"keys": keys})
	}
}

// token signs claims with the newest key: NAME=TEXT each; sub, iss and exp are there anyway.
func (p *provider) token(ts *testscript.TestScript, pairs []string) string {
	p.mu.Lock()
	k, kid := p.keys[len(p.keys)-1], fmt.Sprint(p.first+len(p.keys)-1)
	p.mu.Unlock()
	claims := jwt.MapClaims{"sub": "tom", "iss": p.server.URL, "exp": time.Now().Add(time.Hour).Unix()}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if name == "kid" {
			kid = value
			continue
		}
		claims[name] = value
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["kid"] = kid
	text, err := t.SignedString(k)
	ts.Check(err)
	return text
}

// introspect calls tokens of the form live-USER active, for a client that knows the password.
func (p *provider) introspect(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	p.mu.Unlock()
	if _, secret, _ := r.BasicAuth(); secret != "of-the-gateway" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	user, live := strings.CutPrefix(r.PostFormValue("token"), "live-")
	json.NewEncoder(w).Encode(map[string]any{"active": live, "sub": user, "scope": "orders:read"})
}

// check lets in whose cookie says a user, forbids one, and sends everybody else to the login.
func (p *provider) check(w http.ResponseWriter, r *http.Request) {
	cookie, err := r.Cookie("session")
	switch {
	case err != nil:
		http.Redirect(w, r, "https://login.example.com/?to="+url.QueryEscape(r.Header.Get("X-Forwarded-Uri")), http.StatusFound)
	case cookie.Value == "eve":
		http.Error(w, "not you", http.StatusForbidden)
	default:
		w.Header().Set("X-Auth-User", cookie.Value)
		w.Header().Set("X-Auth-Role", "admin")
	}
}

func (p *provider) close() { p.server.Close() }

// directoryCommand starts a directory in which tom (hunter2) is of the group ops and eve (secret) is not.
func directoryCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "start" {
		ts.Fatalf("usage: directory start")
	}
	w := worldOf(ts)
	person := func(uid, password, group string) ldaptest.Entry {
		return ldaptest.Entry{DN: "uid=" + uid + ",ou=people,dc=example", Password: password, Attributes: map[string][]string{"uid": {uid}, "memberOf": {group}}}
	}
	w.directory = &ldaptest.Server{Entries: []ldaptest.Entry{person("tom", "hunter2", "cn=ops"), person("eve", "secret", "cn=dev")}}
	ts.Check(w.directory.Start())
	ts.Setenv("DIRECTORY", w.directory.URL())
}

// signCommand sets a variable to the Authorization header of a request that is signed with HMAC-SHA256 now.
func signCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: sign NAME APP KEY METHOD PATH [BODY]")
	}
	path, query, _ := strings.Cut(args[4], "?")
	body := sha256.Sum256([]byte(strings.Join(args[5:], "")))
	seconds, nonce := fmt.Sprint(time.Now().Unix()), rand.Text()
	mac := hmac.New(sha256.New, []byte(args[2]))
	mac.Write([]byte(strings.Join([]string{"HMAC-SHA256", args[1], seconds, nonce, args[3], ts.Getenv("GATEWAY"), path, query, hex.EncodeToString(body[:])}, "\n")))
	ts.Setenv(args[0], fmt.Sprintf(`HMAC-SHA256 key="%s", time="%s", nonce="%s", signature="%s"`, args[1], seconds, nonce, base64.StdEncoding.EncodeToString(mac.Sum(nil))))
}
