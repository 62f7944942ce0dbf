package luaapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/luatest"
)

// authenticating is a bench whose filter lets in whom a verifier knows.
func authenticating(t *testing.T, settings, verifier string) *luatest.Bench {
	t.Helper()
	return bench(t, settings, map[string]string{"filter": `local M = { stage = "auth" }
function M.init(conf) return ` + verifier + ` end
function M.on_request(req, ctx, conf)
  local who, refusal = conf.state:verify(req)
  if not who then return gw.auth.refuse(refusal) end
  ctx.user = who.user
  req.headers["X-Who"] = who.kind .. " " .. tostring(who.user)
end
return M`})
}

// TestAVerifierThatWaitsHoldsNoPlaceOfThePool: with one VM in the pool, a request that waits for another service lets others run.
func TestAVerifierThatWaitsHoldsNoPlaceOfThePool(t *testing.T) {
	come, release := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("token") == "slow" {
			close(come)
			<-release
		}
		io.WriteString(w, `{"active":true,"sub":"tom"}`)
	}))
	defer service.Close()
	verifier := fmt.Sprintf(`gw.auth.introspection({ url = %q, timeout = "60s" })`, service.URL)
	b := authenticating(t, "[scripts]\nvms = 1\nwait = \"60s\"\nmax_waiting = 1\n", verifier)
	ask := func(authorization string) int {
		x := &core.Exchange{Route: b.Route("all")}
		x.Request.ClientIP = netip.MustParseAddr("192.0.2.1")
		x.Request.Header.Add("Authorization", authorization)
		x.Request.Body.Attach(nil, 0)
		reply, err := b.Pipeline.Stages(x.Route)[0].Request(x)
		if err != nil {
			t.Error(err)
		}
		if reply == nil {
			return 0
		}
		return reply.Status
	}
	if got := ask("Bearer known"); got != 0 {
		t.Fatalf("got %d", got)
	}
	slow := make(chan int, 1)
	go func() { slow <- ask("Bearer slow") }()
	<-come
	for authorization, want := range map[string]int{"Bearer known": 0, "Basic x": 401, "Bearer other": 503} { // one may wait, and one does
		if got := ask(authorization); got != want {
			t.Errorf("%s while another waits: %d, want %d", authorization, got, want)
		}
	}
	close(release)
	if got := <-slow; got != 0 {
		t.Errorf("the one that waited: %d", got)
	}
	if got := ask("Bearer other"); got != 0 {
		t.Errorf("afterwards: %d", got)
	}
}

func TestTokensAreRevokedByAStore(t *testing.T) {
	b := bench(t, "[filter.jwt]\nsecret = \""+secret+"\"\nrevoked = \"revoked\"\n", map[string]string{
		"jwt": scriptFile(t, "jwt"),
		"revoke": `local M = { stage = "log" }
function M.on_request(req) if req.query.revoke then gw.shared.set("revoked", req.query.revoke, true) end end
return M`})
	signed := func(id string) string {
		text, err := auth.Sign([]byte(secret), map[string]any{"sub": "tom", "jti": id}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	token, other := signed("7"), signed("8")
	ask := func(target, token string) int {
		return b.Do(luatest.Request{Target: target, Headers: [][2]string{{"Authorization", "Bearer " + token}}}).Status
	}
	for _, step := range []struct {
		target, token string
		want          int
	}{{"/", token, 200}, {"/", token, 200}, {"/?revoke=7", other, 200}, {"/", token, 401}, {"/", other, 200}} {
		if got := ask(step.target, step.token); got != step.want {
			t.Errorf("%s: %d, want %d", step.target, got, step.want)
		}
	}
}

func TestVerifiersLiveOnOverReloads(t *testing.T) {
	asked := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		io.WriteString(w, `{"active":true,"sub":"tom"}`)
	}))
	defer service.Close()
	var before *luatest.Bench
	for range 3 {
		b, err := luatest.New(luatest.Options{Before: before, Files: map[string]string{"gateway.toml": config, "scripts/filter.lua": `local M = { stage = "auth" }
function M.init() return gw.auth.introspection({ url = "` + service.URL + `" }) end
function M.on_request(req, ctx, conf)
  local who, refusal = conf.state:verify(req)
  if not who then return gw.auth.refuse(refusal) end
end
return M`}})
		if err != nil {
			t.Fatal(err)
		}
		if a := b.Do(luatest.Request{Headers: [][2]string{{"Authorization", "Bearer t"}}}); a.Status != 200 {
			t.Fatal(a.Status, a.Body)
		}
		before = b
	}
	if asked != 1 {
		t.Errorf("asked %d times over two reloads", asked)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	for body, want := range map[string]string{
		`local who, r = v:verify(req) assert(who == nil and r.status == 401 and r.message == "missing bearer token" and r.reason == "no token")
			assert(#r.challenges == 1 and r.challenges[1] == 'Bearer realm="x"')`: "",
		`local who, r = v:verify(req) return r.why`:   "a refusal has no \"why\"",
		`local who, r = v:verify(req) r.status = 200`: "a refusal cannot be changed",
		`v.verify(req)`:        "call it with a colon",
		`v:verify()`:           "req expected",
		`v:verify({})`:         "req expected",
		`v.secret = 1`:         "a verifier has no fields to set",
		`gw.auth.refuse("no")`: "the refusal of verifier:verify expected",
		`gw.auth.jwt({ secret = ("k"):rep(32) })`:              "cannot be called in on_request",
		`gw.jwt.verify("a.b.c", { jwks_url = "https://x/y" })`: "call gw.jwt.check(conf) there",
		`gw.jwt.verify("a.b.c", { secret = "short" })`:         "secret: secret has 5 bytes",
		`local claims, err, reason, status, challenge = gw.jwt.verify("x", { secret = ("k"):rep(32), realm = "r" })
			assert(claims == nil and err == "token invalid" and status == 401 and challenge == 'Bearer realm="r", error="invalid_token"', challenge)`: "",
		`assert(gw.auth.claim({ org = { id = "7", roles = { "a", "b" } }, ["x.y"] = 1 }, "org.id") == "7")
			assert(gw.auth.claim({ org = { roles = { "a", "b" } } }, "org.roles") == "a,b" and gw.auth.claim({ ["x.y"] = 1 }, "x.y") == 1)
			assert(gw.auth.claim({}, "a.b.c") == nil)`: "",
		`gw.auth.tell(req, { a = 1 }, { ["X Y"] = "a" })`:            "no header can be named",
		`gw.auth.tell(req, { a = 1 }, { ["X-A"] = 7 })`:              "header X-A is told the name of a claim, not a number",
		`gw.auth.tell(req, { a = "x\r\nB: 1" }, { ["X-A"] = "a" })`:  "line break",
		`gw.auth.tell(req, { a = 1 }, { ["Content-Length"] = "a" })`: "written by the gateway",
		`gw.auth.tell(req, { a = true }, { ["X-A"] = "a" })`:         "is set to a string or a number",
		`gw.auth.tell({}, {}, {})`:                                   "req expected",
	} {
		b := bench(t, "", map[string]string{"filter": `local v = gw.auth.jwt({ secret = ("k"):rep(32), realm = "x" })
local M = { stage = "auth" }
function M.on_request(req, ctx, conf)
` + body + `
end
return M`})
		a := b.Do(luatest.Request{})
		if want == "" && a.Err != nil || want != "" && (a.Err == nil || !strings.Contains(a.Err.Error(), want)) {
			t.Errorf("%s\ngot %v, want %s", body, a.Err, want)
		}
	}
}

// TestClaimsAreToldForEachProofAnew has two callers and two tables of headers, again and again: what was worked out for one is not told for another.
func TestClaimsAreToldForEachProofAnew(t *testing.T) {
	b := bench(t, "[filter.filter]\nfirst = { X-Org = \"org.id\", X-Roles = \"roles\", X-Age = \"age\" }\nsecond = { X-Org = \"sub\" }\n", map[string]string{
		"filter": `local M = { stage = "auth", config = { first = { "map", of = "string" }, second = { "map", of = "string" } } }
function M.init() return gw.auth.jwt({ secret = "` + secret + `" }) end
function M.on_request(req, ctx, conf)
  local who = conf.state:verify(req)
  gw.auth.tell(req, who, req.path == "/second" and conf.second or conf.first)
  gw.auth.tell(req, { a = { b = 7 } }, { ["X-Own"] = "a.b" })
end
return M`})
	var told luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer {
		told = f
		return luatest.Answer{Status: 200}
	}
	sign := func(claims map[string]any) string {
		token, err := auth.Sign([]byte(secret), claims, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	tom := sign(map[string]any{"sub": "tom", "org": map[string]any{"id": "o1"}, "roles": []string{"a", "b"}, "age": 40})
	ann := sign(map[string]any{"sub": "ann", "roles": []string{"c"}})
	for range 3 {
		for _, c := range []struct{ token, path, org, roles, age string }{
			{tom, "/first", "o1", "a,b", "40"}, {ann, "/first", "", "c", ""}, {tom, "/second", "tom", "", ""}, {ann, "/second", "ann", "", ""},
		} {
			a := b.Do(luatest.Request{Target: c.path, Headers: [][2]string{{"Authorization", "Bearer " + c.token}}})
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			for name, want := range map[string]string{"X-Org": c.org, "X-Roles": c.roles, "X-Age": c.age, "X-Own": "7"} {
				if got := told.Header(name); got != want {
					t.Errorf("%s: %s is %q, want %q", c.path, name, got, want)
				}
			}
		}
	}
}

// TestSettingsOfVerifiersAreRefusedAtTheirPlace has what is impossible, with the line on which it stands.
func TestSettingsOfVerifiersAreRefusedAtTheirPlace(t *testing.T) {
	for settings, want := range map[string]string{
		"[filter.jwt]\n\njwks_url = \"ftp://x\"\n":                                             `: filter.jwt.jwks_url: "ftp://x" is no URL`,
		"[filter.jwt]\nsecret = \"" + secret + "\"\njwks_url = \"https://x/y\"\n":              ": filter.jwt.secret: more than one of",
		"[filter.jwt]\ndiscovery = true\n":                                                     ": filter.jwt.discovery: asks the issuer",
		"[filter.jwt]\njwks = \"{}\"\n":                                                        ": filter.jwt.jwks: jwks: no key set",
		"[filter.jwt]\nsecret = \"" + secret + "\"\nclaims = { role = { is = \"x\" } }\n":      ": filter.jwt.claims.role.is: there is no such setting",
		"[filter.jwt]\nsecret = \"" + secret + "\"\nclaims = { role = { matches = \"(\" } }\n": ": filter.jwt.claims.role.matches: is no regular expression",
		"[filter.jwt]\nsecret = \"" + secret + "\"\nheaders = { \"X Y\" = \"a\" }\n":           ": filter.jwt.headers: no header can be named",
		"[[filter.jwt.issuers]]\nissuer = \"a\"\nsecret = \"short\"\n":                         ": filter.jwt.issuers",
		"[[filter.jwt.issuers]]\nissuer = \"a\"\nsecrets = \"x\"\n":                            "secrets: there is no such setting",
	} {
		_, err := luatest.New(luatest.Options{Files: map[string]string{"gateway.toml": config + settings, "scripts/jwt.lua": scriptFile(t, "jwt")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %s", settings, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the secret is shown: %v", err)
		}
	}
}

func TestHeadersThatSettingsNameAreIdentityHeaders(t *testing.T) {
	b := bench(t, "[filter.jwt]\nsecret = \""+secret+"\"\nheaders = { X-Tenant = \"org.id\" }\n[filter.filter]\ntake = [\"X-Listed\"]\nheader = \"X-Single\"\n", map[string]string{
		"jwt": scriptFile(t, "jwt"),
		"filter": `return { stage = "auth", config = { take = { "list", of = "string", identity = true }, header = { "string", identity = true } },
			on_request = function(req) req.headers["X-Listed"] = "x" end }`})
	for _, name := range []string{"X-User-Id", "X-Tenant", "X-Listed", "X-Single"} {
		if !slices.Contains(b.Pipeline.Identity(), name) {
			t.Errorf("%s is not among %v", name, b.Pipeline.Identity())
		}
	}
	if a := b.Do(luatest.Request{Headers: [][2]string{{"X-Tenant", "1"}}}); a.Status != 401 || a.Err != nil {
		t.Errorf("%d, %v", a.Status, a.Err)
	}
}

// TestATimerMayVerifyTokens: there is no request then.
func TestATimerMayVerifyTokens(t *testing.T) {
	declarations := `gw.time.every(1, function()
  local claims, err, reason, status = gw.jwt.verify("a.b.c", { secret = ("k"):rep(32) })
  gw.shared.set("test", "n", tostring(claims) .. " " .. err .. " " .. status)
end)`
	running(t, func(t *testing.T) *luatest.Bench { return timed(t, nil, "", declarations) }, func(t *testing.T, b *luatest.Bench) {
		counts(t, b, "n", "nil token invalid 401")
	})
}

// TestAClientThatLeavesEndsAVerifiersWait: the exchange ends, and whoever asks the same next is answered.
func TestAClientThatLeavesEndsAVerifiersWait(t *testing.T) {
	come, release := make(chan struct{}, 1), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		come <- struct{}{}
		<-release
		io.WriteString(w, `{"active":true,"sub":"tom"}`)
	}))
	defer service.Close()
	b := authenticating(t, "", fmt.Sprintf(`gw.auth.introspection({ url = %q, timeout = "60s" })`, service.URL))
	exchange := func() *core.Exchange {
		x := &core.Exchange{Route: b.Route("all")}
		x.Request.ClientIP = netip.MustParseAddr("192.0.2.1")
		x.Request.Header.Add("Authorization", "Bearer t")
		x.Request.Body.Attach(nil, 0)
		return x
	}
	leaving := exchange()
	ended := make(chan error, 1)
	go func() {
		_, err := b.Pipeline.Stages(leaving.Route)[0].Request(leaving)
		ended <- err
	}()
	<-come
	leaving.Lifeline.Break()
	fault, ok := errors.AsType[*core.Error](<-ended)
	if !ok || fault.Status != core.StatusClientGone {
		t.Errorf("got %v", fault)
	}
	close(release)
	next := exchange()
	if reply, err := b.Pipeline.Stages(next.Route)[0].Request(next); reply != nil || err != nil || next.User != "tom" {
		t.Errorf("the next one: %v, %v", reply, err)
	}
}
