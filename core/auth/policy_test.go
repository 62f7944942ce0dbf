package auth_test

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

func tokens(t *testing.T, o auth.JWTOptions) auth.Verifier {
	t.Helper()
	return must(auth.NewTokens(verifier(t, o), auth.Place{}, "api"))
}

func TestTokensOfRequests(t *testing.T) {
	admin := []auth.Rule{{Claim: "role", Equals: "admin"}}
	v := tokens(t, auth.JWTOptions{Rules: admin})
	for name, test := range map[string]struct {
		lines     []string
		want      string
		challenge string
	}{
		"good":                     {[]string{"Authorization: Bearer " + token(`{"sub":"tom","role":"admin"}`)}, "jwt tom", ""},
		"none":                     {nil, "401 missing bearer token", `Bearer realm="api"`},
		"another scheme":           {[]string{"Authorization: Basic eDp5"}, "401 missing bearer token", `Bearer realm="api"`},
		"wrong":                    {[]string{"Authorization: Bearer x.y.z"}, "401 token invalid", `Bearer realm="api", error="invalid_token"`},
		"junk":                     {[]string{"Authorization: Bearer a b"}, "401 token invalid", `Bearer realm="api", error="invalid_token"`},
		"expired":                  {[]string{"Authorization: Bearer " + token(`{"sub":"tom","exp":1}`)}, "401 token expired", `Bearer realm="api", error="invalid_token"`},
		"another role":             {[]string{"Authorization: Bearer " + token(`{"sub":"tom","role":"user"}`)}, "403 not allowed", `Bearer realm="api", error="insufficient_scope"`},
		"nobody":                   {[]string{"Authorization: Bearer " + token(`{"role":"admin"}`)}, "401 token invalid", `Bearer realm="api", error="invalid_token"`},
		"two":                      {[]string{"Authorization: Bearer a.b.c", "Authorization: Bearer a.b.c"}, "401 token invalid", `Bearer realm="api", error="invalid_token"`},
		"another role, remembered": {[]string{"Authorization: Bearer " + token(`{"sub":"tom","role":"user"}`)}, "403 not allowed", `Bearer realm="api", error="insufficient_scope"`},
	} {
		x := request("/", test.lines...)
		if got := outcome(v, x); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if got := strings.Join(challenges(v, x), "|"); test.challenge != "" && got != test.challenge {
			t.Errorf("%s: challenge %s", name, got)
		}
	}
	good := token(`{"sub":"tom"}`)
	for place, x := range map[auth.Place]*core.Exchange{
		{Header: "X-Token"}: request("/", "X-Token: "+good), {Cookie: "session"}: request("/", "Cookie: session="+good), {Query: "access_token"}: request("/?access_token=" + good),
	} {
		if got := outcome(must(auth.NewTokens(verifier(t, auth.JWTOptions{}), place, "")), x); got != "jwt tom" {
			t.Errorf("%+v: %s", place, got)
		}
	}
	mail := must(auth.NewTokens(verifier(t, auth.JWTOptions{User: "contact.email"}), auth.Place{}, ""))
	if got := outcome(mail, request("/", "Authorization: Bearer "+token(`{"contact":{"email":"tom@example.com"}}`))); got != "jwt tom@example.com" {
		t.Errorf("the user of another claim: %s", got)
	}
}

func TestRules(t *testing.T) {
	claims := `{"role":"admin","level":5,"vip":true,"scope":"orders:read orders:write","roles":["a","b",7],"org":{"tier":{"name":"gold"}},"none":null,
		"https://example.com/team":"red","a.b":{"c":"deep"},"empty":[]}`
	for name, test := range map[string]struct {
		rule auth.Rule
		good bool
	}{
		"equals":                    {auth.Rule{Claim: "role", Equals: "admin"}, true},
		"equals another":            {auth.Rule{Claim: "role", Equals: "Admin"}, false},
		"equals a number":           {auth.Rule{Claim: "level", Equals: "5"}, true},
		"equals true":               {auth.Rule{Claim: "vip", Equals: "true"}, true},
		"a list equals nothing":     {auth.Rule{Claim: "roles", Equals: "a"}, false},
		"absent":                    {auth.Rule{Claim: "nothing", Equals: ""}, false},
		"null":                      {auth.Rule{Claim: "none", Equals: ""}, false},
		"one of":                    {auth.Rule{Claim: "role", OneOf: []string{"ops", "admin"}}, true},
		"none of":                   {auth.Rule{Claim: "role", OneOf: []string{"ops"}}, false},
		"one of a list":             {auth.Rule{Claim: "roles", OneOf: []string{"x", "b"}}, true},
		"contains a word":           {auth.Rule{Claim: "scope", Contains: []string{"orders:read"}}, true},
		"contains all words":        {auth.Rule{Claim: "scope", Contains: []string{"orders:read", "orders:write"}}, true},
		"contains not all":          {auth.Rule{Claim: "scope", Contains: []string{"orders:read", "users:read"}}, false},
		"contains a part of a word": {auth.Rule{Claim: "scope", Contains: []string{"orders"}}, false},
		"contains an item":          {auth.Rule{Claim: "roles", Contains: []string{"b", "7"}}, true},
		"an empty list":             {auth.Rule{Claim: "empty", Contains: []string{"b"}}, false},
		"matches":                   {auth.Rule{Claim: "role", Matches: regexp.MustCompile("^adm")}, true},
		"an item matches":           {auth.Rule{Claim: "roles", Matches: regexp.MustCompile("^b$")}, true},
		"matches not":               {auth.Rule{Claim: "role", Matches: regexp.MustCompile("^ops")}, false},
		"a map matches nothing":     {auth.Rule{Claim: "org", Matches: regexp.MustCompile("")}, false},
		"path":                      {auth.Rule{Claim: "org.tier.name", Equals: "gold"}, true},
		"path too long":             {auth.Rule{Claim: "org.tier.name.x", Equals: "gold"}, false},
		"a name with dots":          {auth.Rule{Claim: "https://example.com/team", Equals: "red"}, true},
		"a name with dots, inside":  {auth.Rule{Claim: "a.b.c", Equals: "deep"}, true},
	} {
		_, err := verifier(t, auth.JWTOptions{Rules: []auth.Rule{test.rule}}).Verify(token(claims))
		if (err == nil) != test.good || err != nil && !errors.Is(err, auth.ErrForbidden) {
			t.Errorf("%s: %v (%s)", name, err, auth.Reason(err))
		}
	}
}

func TestRevokedTokensAreRefusedEachTime(t *testing.T) {
	revoked := map[string]bool{}
	v := verifier(t, auth.JWTOptions{Revoked: func(id string) bool { return revoked[id] }})
	text := token(`{"sub":"tom","jti":"7"}`)
	for range 2 {
		if _, err := v.Verify(text); err != nil {
			t.Fatal(err)
		}
	}
	revoked["7"] = true
	if _, err := v.Verify(text); !errors.Is(err, auth.ErrInvalid) || auth.Reason(err) != "jti was revoked" {
		t.Errorf("a token that was remembered: %v", err)
	}
	if _, err := v.Verify(token(`{"sub":"tom","jti":"8"}`)); err != nil {
		t.Error(err)
	}
	if _, err := v.Verify(token(`{"sub":"tom"}`)); err != nil {
		t.Error(err)
	}
	delete(revoked, "7")
	if _, err := v.Verify(text); err != nil {
		t.Error(err)
	}
}

func TestIssuersHaveTheirOwnKeysAndRules(t *testing.T) {
	other := []byte(strings.Repeat("o", 32))
	v := must(auth.NewIssuers([]auth.JWTOptions{
		{Issuer: []string{"https://a.example"}, Secret: secret, Audience: []string{"x"}, Clock: at(now)},
		{Issuer: []string{"https://b.example", "https://b.example/"}, Secret: other, Clock: at(now)},
	}))
	const a, b = `{"iss":"https://a.example","aud":"x","sub":"tom"}`, `{"iss":"https://b.example","sub":"eve"}`
	for name, test := range map[string]struct {
		text string
		good bool
	}{
		"a's":                   {token(a), true},
		"b's":                   {hs256(other, `{"alg":"HS256"}`, b), true},
		"a's by b's key":        {hs256(other, `{"alg":"HS256"}`, a), false},
		"b's by a's key":        {token(b), false},
		"a's for somebody else": {token(`{"iss":"https://a.example","aud":"y","sub":"tom"}`), false},
		"of a stranger":         {token(`{"iss":"https://c.example","sub":"tom"}`), false},
		"of nobody":             {token(`{"sub":"tom"}`), false},
		"of two":                {token(`{"iss":"https://a.example","iss":"https://b.example","aud":"x"}`), false},
		"of a list":             {token(`{"iss":["https://a.example"],"aud":"x"}`), false},
		"one part":              {"abc", false},
		"too long":              {strings.Repeat("a", 9<<10), false},
	} {
		for range 2 {
			if _, err := v.VerifyWait(nil, test.text); (err == nil) != test.good || err != nil && !errors.Is(err, auth.ErrInvalid) {
				t.Errorf("%s: %v (%s)", name, err, auth.Reason(err))
			}
		}
	}
	if _, err := v.VerifyWait(nil, ""); !errors.Is(err, auth.ErrMissing) {
		t.Error(err)
	}
	for want, list := range map[string][]auth.JWTOptions{
		"no issuer: want at least one":                                   nil,
		"issuer 1 has no name: want issuer, which its tokens say in iss": {{Secret: secret}},
		"issuer a stands twice":                                          {{Issuer: []string{"a"}, Secret: secret}, {Issuer: []string{"a"}, Secret: other}},
		"issuer a: secret has 0 bytes: HS256 wants at least 32":          {{Issuer: []string{"a"}}},
	} {
		if _, err := auth.NewIssuers(list); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// broken is a verifier that cannot tell.
type broken struct{}

func (broken) Verify(auth.Waiter, *core.Exchange) (*auth.Identity, error) {
	return nil, auth.Challenge(auth.ErrUnavailable, "")
}

func TestPolicies(t *testing.T) {
	bearer := tokens(t, auth.JWTOptions{Rules: []auth.Rule{{Claim: "role", Equals: "admin"}}})
	keys := must(auth.NewAPIKeys(auth.APIKeysOptions{Realm: "api", Keys: []auth.APIKey{{Hash: auth.HashAPIKey("k1"), User: "acme"}}}))
	office := must(auth.NewNetworkVerifier([]auth.Network{{User: "office", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}, nil))
	all := []auth.Named{{Name: "office", Verifier: office}, {Name: "tokens", Verifier: bearer}, {Name: "keys", Verifier: keys}}
	const goodKey, badKey = "X-Api-Key: k1", "X-Api-Key: k2"
	admin, user, bad := "Authorization: Bearer "+token(`{"sub":"tom","role":"admin"}`), "Authorization: Bearer "+token(`{"sub":"tom","role":"user"}`), "Authorization: Bearer x.y.z"
	both := []string{`Bearer realm="api"`, `ApiKey realm="api"`}
	for name, test := range map[string]struct {
		require    auth.Require
		verifiers  []auth.Named
		lines      []string
		from       string
		want       string
		challenges []string
	}{
		"any: a key":                           {"", all, []string{goodKey}, "", "api_key acme", nil},
		"any: a token":                         {"any", all, []string{admin}, "", "jwt tom", nil},
		"any: the office":                      {"any", all, nil, "10.1.1.1", "network office", nil},
		"any: the first of two":                {"any", all, []string{goodKey, admin}, "", "jwt tom", nil},
		"any: a wrong one beside a good one":   {"any", all, []string{bad, goodKey}, "", "api_key acme", nil},
		"any: nothing":                         {"any", all, nil, "", "401 missing bearer token", both},
		"any: a wrong token":                   {"any", all, []string{bad}, "", "401 token invalid", []string{`Bearer realm="api", error="invalid_token"`, both[1]}},
		"any: a wrong key":                     {"any", all, []string{badKey}, "", "401 API key invalid", both},
		"any: a good token that is not enough": {"any", all, []string{user}, "", "403 not allowed", []string{`Bearer realm="api", error="insufficient_scope"`, both[1]}},
		"any: nobody can tell":                 {"any", append(all[1:], auth.Named{Name: "x", Verifier: broken{}}), []string{bad}, "", "503 temporarily unavailable", nil},
		"any: one can tell":                    {"any", append([]auth.Named{{Name: "x", Verifier: broken{}}}, all...), []string{goodKey}, "", "api_key acme", nil},
		"any: elsewhere alone":                 {"any", all[:1], nil, "", "403 not from here", nil},
		"all: both":                            {"all", all[1:], []string{goodKey, admin}, "", "jwt tom", nil},
		"all: one":                             {"all", all[1:], []string{admin}, "", "401 missing API key", both[1:]},
		"all: the other":                       {"all", all[1:], []string{goodKey}, "", "401 missing bearer token", both[:1]},
		"optional: nothing":                    {"optional", all[1:], nil, "", "anonymous guest", nil},
		"optional: elsewhere and nothing":      {"optional", all, nil, "", "anonymous guest", nil},
		"optional: a key":                      {"optional", all[1:], []string{goodKey}, "", "api_key acme", nil},
		"optional: a wrong key":                {"optional", all[1:], []string{badKey}, "", "401 API key invalid", both},
		"none: nothing":                        {"none", nil, nil, "", "anonymous guest", nil},
		"none: a wrong key":                    {"none", all, []string{badKey}, "", "anonymous guest", nil},
	} {
		p := must(auth.NewPolicy(auth.PolicyOptions{Require: test.require, Verifiers: test.verifiers, Anonymous: "guest"}))
		x := request("/", test.lines...)
		if test.from != "" {
			x.Request.ClientIP = netip.MustParseAddr(test.from)
		}
		if got := outcome(p, x); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if test.challenges != nil && !slices.Equal(challenges(p, x), test.challenges) {
			t.Errorf("%s: challenges %q", name, challenges(p, x))
		}
	}
	p := must(auth.NewPolicy(auth.PolicyOptions{Require: "all", Verifiers: all[1:]}))
	who, err := p.Verify(&patient{}, request("/", goodKey, admin))
	if err != nil || who.Verifier != "tokens" || len(who.Others) != 1 || who.Others[0].User != "acme" || who.Others[0].Verifier != "keys" {
		t.Errorf("%+v, %v", who, err)
	}
	again, err := must(auth.NewPolicy(auth.PolicyOptions{Verifiers: all[1:]})).Verify(&patient{}, request("/", goodKey))
	same, err2 := must(auth.NewPolicy(auth.PolicyOptions{Verifiers: all[1:]})).Verify(&patient{}, request("/", goodKey))
	if err != nil || err2 != nil || again != same {
		t.Error("an identity is made anew for each request")
	}
	for want, o := range map[string]auth.PolicyOptions{
		`"some" is no policy: want any, all, optional or none`:  {Require: "some"},
		"no verifier: want at least one, or the policy none":    {},
		"the name of who is anonymous cannot stand in a header": {Require: "none", Anonymous: "a\nb"},
	} {
		if _, err := auth.NewPolicy(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestNamesThatAreOthersOnceTrimmedAreRefused: a header's value loses spaces and tabs at its ends, and would name somebody else.
func TestNamesThatAreOthersOnceTrimmedAreRefused(t *testing.T) {
	v := tokens(t, auth.JWTOptions{})
	for claims, want := range map[string]string{
		`{"sub":"tom"}`: "jwt tom", `{"sub":"tom the cat"}`: "jwt tom the cat", `{"sub":" tom"}`: "401 token invalid", `{"sub":"tom "}`: "401 token invalid",
		`{"sub":"\ttom"}`: "401 token invalid", `{"sub":"tom\t"}`: "401 token invalid", `{"sub":"t\u00f6m"}`: "jwt töm",
		`{"sub":"` + strings.Repeat("t", 1025) + `"}`: "401 token invalid",
	} {
		if got := outcome(v, request("/", "Authorization: Bearer "+token(claims))); got != want {
			t.Errorf("%.40s: got %s, want %s", claims, got, want)
		}
	}
}
