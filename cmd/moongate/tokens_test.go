package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const tokenKey = "a key of thirty-two bytes and more"

// entrance is a way into a gateway. Its client invents nothing and follows nothing.
type entrance struct {
	name, base string
	client     *http.Client
}

// entrances are HTTP/1.1 and HTTP/2, with and without TLS, into a gateway whose first listener has none and whose second has it.
func entrances(t *testing.T, w *whole) (list []entrance) {
	t.Helper()
	at := w.gateway.Addresses()
	for _, e := range []struct {
		name, base  string
		h1, h2, h2c bool
	}{
		{"h1", "http://" + at[0], true, false, false}, {"h2c", "http://" + at[0], false, false, true},
		{"h1 over TLS", "https://" + at[1], true, false, false}, {"h2 over TLS", "https://" + at[1], false, true, false},
	} {
		p := new(http.Protocols)
		p.SetHTTP1(e.h1)
		p.SetHTTP2(e.h2)
		p.SetUnencryptedHTTP2(e.h2c)
		tr := &http.Transport{Protocols: p, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		t.Cleanup(tr.CloseIdleConnections)
		list = append(list, entrance{e.name, e.base, &http.Client{Transport: tr, Timeout: time.Minute}})
	}
	return list
}

// get asks for a path, which goes out byte for byte, with so many lines of Authorization.
func (e entrance) get(t *testing.T, path string, lines ...string) (status int, user, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.base, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Opaque: path}
	if len(lines) > 0 {
		r.Header["Authorization"] = lines
	}
	resp, err := e.client.Do(r)
	if err != nil {
		t.Fatalf("%s: %s: %v", e.name, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %s: %v", e.name, path, err)
	}
	return resp.StatusCode, resp.Header.Get("X-Got-User"), string(text)
}

// signed is a token of the parts as they are written, which are encoded here unless they are already.
func signed(head, claims string) string {
	part := func(text string) string {
		if strings.HasPrefix(text, "{") {
			return base64.RawURLEncoding.EncodeToString([]byte(text))
		}
		return text
	}
	text := part(head) + "." + part(claims)
	mac := hmac.New(sha256.New, []byte(tokenKey))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// guarded is a gateway with the shipped jwt filter in front of an upstream that tells whom it was told of, and counts.
func guarded(t *testing.T, http, filter, routes string) (*whole, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	up := httptest.NewServer(userEcho(asked))
	t.Cleanup(up.Close)
	script, err := os.ReadFile("../../scripts/jwt.lua")
	if err != nil {
		t.Fatal(err)
	}
	return openWhole(t, map[string]string{
		"scripts/jwt.lua": string(script),
		"gateway.toml": "[log]\naccess = \"off\"\n[admin]\naddress = \"127.0.0.1:0\"\n" + http +
			"[[listener]]\naddress = \"127.0.0.1:8080\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nself_signed = [\"127.0.0.1\"]\n" +
			"[[upstream]]\nname = \"u\"\nendpoints = [\"" + up.URL + "\"]\n[filter.jwt]\nsecret = \"" + tokenKey + "\"\n" + filter + routes,
	}), asked
}

func userEcho(asked *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("X-Got-User", r.Header.Get("X-User-Id"))
		fmt.Fprint(w, r.RequestURI)
	}
}

const everyPath = "[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"u\"\n"

// TestTokensThatLenientParsersTakeAreRefusedOnEveryWayIn: each was taken by a gateway that left heads and claims to a library.
func TestTokensThatLenientParsersTakeAreRefusedOnEveryWayIn(t *testing.T) {
	const head, later = `{"alg":"HS256"}`, `"exp":4000000000`
	good := signed(head, `{"sub":"tom",`+later+`}`)
	loose := func(text string) string { // the same bytes, with unused bits that are not 0
		if len(text)%3 == 0 {
			t.Fatalf("%s leaves no bits unused", text)
		}
		e := base64.RawURLEncoding.EncodeToString([]byte(text))
		return e[:len(e)-1] + string(e[len(e)-1]+1)
	}
	const missing, invalid, expired = "missing bearer token", "token invalid", "token expired"
	cases := map[string]struct {
		lines []string
		want  string // "": let in
	}{
		"good":                              {[]string{"Bearer " + good}, ""},
		"scheme in lower case":              {[]string{"bearer " + good}, ""},
		"scheme in upper case, more spaces": {[]string{"BEARER   " + good}, ""},
		"none":                              {nil, missing},
		"scheme alone":                      {[]string{"Bearer"}, missing},
		"no space":                          {[]string{"Bearer" + good}, missing},
		"another scheme":                    {[]string{"Basic " + good}, missing},
		"something behind":                  {[]string{"Bearer " + good + " x"}, invalid},
		"two in one line":                   {[]string{"Bearer " + good + ", Bearer " + good}, invalid},
		"two lines, the first is good":      {[]string{"Bearer " + good, "Bearer x"}, invalid},
		"two lines, the last is good":       {[]string{"Bearer x", "Bearer " + good}, invalid},
		"two lines, of two schemes":         {[]string{"Basic eDp5", "Bearer " + good}, invalid},
		"the same line twice":               {[]string{"Bearer " + good, "Bearer " + good}, invalid},
		"an empty line beside it":           {[]string{"", "Bearer " + good}, invalid},
		"crit that nobody knows":            {[]string{"Bearer " + signed(`{"alg":"HS256","crit":["x"],"x":1}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"crit of what is known":             {[]string{"Bearer " + signed(`{"alg":"HS256","crit":["exp"],"exp":1}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"crit that is empty":                {[]string{"Bearer " + signed(`{"alg":"HS256","crit":[]}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"b64 false":                         {[]string{"Bearer " + signed(`{"alg":"HS256","b64":false}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"b64 false, in crit":                {[]string{"Bearer " + signed(`{"alg":"HS256","b64":false,"crit":["b64"]}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"exp 0":                             {[]string{"Bearer " + signed(head, `{"sub":"eve","exp":0}`)}, expired},
		"exp below 0":                       {[]string{"Bearer " + signed(head, `{"sub":"eve","exp":-1}`)}, expired},
		"exp null":                          {[]string{"Bearer " + signed(head, `{"sub":"eve","exp":null}`)}, invalid},
		"exp false":                         {[]string{"Bearer " + signed(head, `{"sub":"eve","exp":false}`)}, invalid},
		"exp text":                          {[]string{"Bearer " + signed(head, `{"sub":"eve","exp":"4000000000"}`)}, invalid},
		"no exp, which the filter requires": {[]string{"Bearer " + signed(head, `{"sub":"eve"}`)}, invalid},
		"sub twice":                         {[]string{"Bearer " + signed(head, `{"sub":"tom","sub":"eve",`+later+`}`)}, invalid},
		"sub twice, by an escape":           {[]string{"Bearer " + signed(head, `{"sub":"tom","\u0073ub":"eve",`+later+`}`)}, invalid},
		"exp twice":                         {[]string{"Bearer " + signed(head, `{"sub":"eve","exp":1,`+later+`}`)}, invalid},
		"alg twice":                         {[]string{"Bearer " + signed(`{"alg":"none","alg":"HS256"}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"a member twice further down":       {[]string{"Bearer " + signed(head, `{"sub":"eve","org":{"id":1,"id":2},`+later+`}`)}, invalid},
		"alg none":                          {[]string{"Bearer " + signed(`{"alg":"none"}`, `{"sub":"eve",`+later+`}`)}, invalid},
		"unused bits in the signature":      {[]string{"Bearer " + good[:len(good)-1] + string(good[len(good)-1]+1)}, invalid},
		"unused bits in the head":           {[]string{"Bearer " + signed(loose(`{"alg":"HS256" }`), `{"sub":"eve",`+later+`}`)}, invalid},
		"unused bits in the claims":         {[]string{"Bearer " + signed(head, loose(`{"sub":"eves",`+later+`}`))}, invalid},
		"padding in the claims":             {[]string{"Bearer " + signed(head, base64.URLEncoding.EncodeToString([]byte(`{"sub":"eves",`+later+`}`)))}, invalid},
		"padding at the end":                {[]string{"Bearer " + good + "="}, invalid},
	}
	w, asked := guarded(t, "", "", everyPath)
	for _, e := range entrances(t, w) {
		for range 2 { // before and after each has been seen
			for name, c := range cases {
				asked.Store(0)
				status, user, body := e.get(t, "/", c.lines...)
				if c.want == "" {
					if status != 200 || user != "tom" {
						t.Errorf("%s: %s: %d, the upstream was told of %q", e.name, name, status, user)
					}
					continue
				}
				if status != 401 || !strings.Contains(body, `"message":"`+c.want+`"`) || asked.Load() != 0 {
					t.Errorf("%s: %s: %d %s, want 401 %s; the upstream was asked %d times", e.name, name, status, body, c.want, asked.Load())
				}
			}
		}
	}
}

// TestAliasesOfAGuardedPathAreGuardedToo: whatever a path is written like, the route and the filter's skip see the one that it stands for.
func TestAliasesOfAGuardedPathAreGuardedToo(t *testing.T) {
	plain := []string{"/private", "/private/", "/%70rivate", "/private;x=1", "/%70%72ivate;x"}
	dotted := []string{"/open/../private", "/open/%2e%2e/private", "/open/.%2E/private", "/open/..;/private", "/open/..;a=b/private", `/open\..\private`,
		`/open/..\private`, "/open//../private", "/open/./../private", "/open/x/../../private", "/open/%2e%2e;/%70rivate", "/./private", "/;/private", "/open//../../private"}
	never := []string{"/open/..%2fprivate", "/open/..%5cprivate", "/open%2f..%2fprivate", "/open/%2e%2e%2fprivate", "/open/..%00/private"}
	routes := map[string]string{
		"two routes": "[[route]]\nname = \"open\"\npath_prefix = \"/open\"\nupstream = \"u\"\n[route.filter.jwt]\nenabled = false\n" + everyPath,
		"skip":       everyPath,
	}
	for policy, want := range map[string]int{"strict": 400, "normalise": 401, "raw": 401} {
		for name, text := range routes {
			filter := ""
			if name == "skip" {
				filter = "skip = [\"/open/**\"]\n"
			}
			w, asked := guarded(t, "[http]\npath = \""+policy+"\"\n", filter, text)
			for _, e := range entrances(t, w) {
				at := func(path string) string { return fmt.Sprintf("%s, %s, %s: %s", policy, name, e.name, path) }
				if status, _, _ := e.get(t, "/open/x"); status != 200 {
					t.Fatalf("%s: %d", at("/open/x"), status)
				}
				asked.Store(0)
				for _, path := range plain {
					if status, _, _ := e.get(t, path); status != 401 {
						t.Errorf("%s: %d, want 401", at(path), status)
					}
				}
				for _, path := range dotted {
					if status, _, _ := e.get(t, path); status != want {
						t.Errorf("%s: %d, want %d", at(path), status, want)
					}
				}
				for _, path := range never {
					if status, _, _ := e.get(t, path); status != 400 {
						t.Errorf("%s: %d, want 400", at(path), status)
					}
				}
				if n := asked.Load(); n != 0 {
					t.Errorf("%s: the upstream was asked %d times", at("all of them"), n)
				}
			}
		}
	}
}
