package auth_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

func TestAPIKeys(t *testing.T) {
	const gold, limited, old = "key-of-acme-0123456789", "key-of-bob-0123456789", "key-of-eve-0123456789"
	clock := now
	v := must(auth.NewAPIKeys(auth.APIKeysOptions{Realm: "orders", Clock: func() time.Time { return clock }, Keys: []auth.APIKey{
		{Hash: auth.HashAPIKey(gold), User: "acme", Tier: "gold", Rate: "100/s"},
		{Hash: auth.HashAPIKey(limited), User: "bob", Routes: []string{"users"}},
		{Hash: auth.HashAPIKey(old), User: "eve", Expires: now.Add(time.Minute)},
	}}))
	for name, test := range map[string]struct {
		x    *core.Exchange
		want string
	}{
		"good":               {request("/", "X-Api-Key: "+gold), "api_key acme"},
		"good, spelled low":  {request("/", "x-api-key: "+gold), "api_key acme"},
		"none":               {request("/"), "401 missing API key"},
		"empty":              {request("/", "X-Api-Key: "), "401 missing API key"},
		"wrong":              {request("/", "X-Api-Key: "+gold+"x"), "401 API key invalid"},
		"its hash":           {request("/", "X-Api-Key: "+auth.HashAPIKey(gold)), "401 API key invalid"},
		"two":                {request("/", "X-Api-Key: "+gold, "X-Api-Key: "+gold), "401 API key invalid"},
		"of another route":   {request("/", "X-Api-Key: "+limited), "403 not allowed"},
		"that ends later":    {request("/", "X-Api-Key: "+old), "api_key eve"},
		"longer than a line": {request("/", "X-Api-Key: "+strings.Repeat("k", 600)), "401 API key invalid"},
	} {
		if got := outcome(v, test.x); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	clock = now.Add(time.Minute)
	if got := outcome(v, request("/", "X-Api-Key: "+old)); got != "401 API key expired" {
		t.Errorf("after its end: %s", got)
	}
	if got := challenges(v, request("/")); !slices.Equal(got, []string{`ApiKey realm="orders"`}) {
		t.Errorf("challenges %q", got)
	}
	who, err := v.Verify(&patient{}, request("/", "X-Api-Key: "+gold))
	if tier, _ := who.Claims.Get("tier"); err != nil || tier.Text() != "gold" {
		t.Errorf("tier %q, %v", tier.Text(), err)
	}
	for place, x := range map[auth.Place]*core.Exchange{
		{Scheme: "ApiKey"}: request("/", "Authorization: apikey  "+gold),
		{Query: "key"}:     request("/?a=1&key=" + strings.Replace(gold, "k", "%6b", 1)),
		{Cookie: "key"}:    request("/", "Cookie: a=b; key="+gold),
	} {
		v := must(auth.NewAPIKeys(auth.APIKeysOptions{Place: place, Keys: []auth.APIKey{{Hash: auth.HashAPIKey(gold), User: "acme"}}}))
		if got := outcome(v, x); got != "api_key acme" {
			t.Errorf("%+v: %s", place, got)
		}
		if got := outcome(v, request("/")); got != "401 missing API key" {
			t.Errorf("%+v, none: %s", place, got)
		}
	}
}

func TestAPIKeyLines(t *testing.T) {
	list, err := auth.ParseAPIKeys("# keys\n\n" + `{"hash":"` + auth.HashAPIKey("k") + `","user":"acme","tier":"gold","rate":"5/s","routes":["a","b"],"expires":"2027-01-01T00:00:00Z"}` + "\n")
	if err != nil || len(list) != 1 || list[0].User != "acme" || list[0].Tier != "gold" || len(list[0].Routes) != 2 || list[0].Expires.Year() != 2027 {
		t.Errorf("%+v, %v", list, err)
	}
	for text, want := range map[string]string{
		`{"user":"a","hash":1}`:             "line 1: hash is of another type",
		"\n{":                               "line 2: not JSON",
		`{"user":"a","user":"b"}`:           "line 1: a member appears twice",
		`{"usr":"a"}`:                       `line 1: there is no "usr" in a key: it has hash, user, tier, rate, routes, expires`,
		`{"user":"a","routes":[1]}`:         "line 1: routes is not a list of strings",
		`{"user":"a","expires":"tomorrow"}`: `line 1: expires is no time: write "2027-01-01T00:00:00Z"`,
	} {
		if _, err := auth.ParseAPIKeys(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for want, o := range map[string]auth.APIKeysOptions{
		"no key: want at least one, or a store of them":                                    {},
		"a key without user, whom it names":                                                {Keys: []auth.APIKey{{Hash: auth.HashAPIKey("k")}}},
		`the key of a has no hash: want "sha256:" and 64 hexadecimal digits of its digest`: {Keys: []auth.APIKey{{User: "a", Hash: "secret-key"}}},
		"the key of b stands twice":                                                        {Keys: []auth.APIKey{{User: "a", Hash: auth.HashAPIKey("k")}, {User: "b", Hash: auth.HashAPIKey("k")}}},
		"want one place to look for it: a header, a query parameter or a cookie":           {Keys: []auth.APIKey{{User: "a", Hash: auth.HashAPIKey("k")}}, Place: auth.Place{Header: "A", Cookie: "b"}},
	} {
		if _, err := auth.NewAPIKeys(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAPIKeysOfAStoreAreAskedForOnceInAWhile(t *testing.T) {
	clock, asked := now, 0
	var trouble error
	texts := map[string]string{auth.HashAPIKey("k1"): `{"user":"acme","routes":["orders"]}`, auth.HashAPIKey("k2"): "nonsense"}
	v := must(auth.NewAPIKeys(auth.APIKeysOptions{Clock: func() time.Time { return clock }, Store: func(_ context.Context, hash string) (string, bool, error) {
		asked++
		text, ok := texts[hash]
		return text, ok, trouble
	}}))
	for range 3 {
		for key, want := range map[string]string{"k1": "api_key acme", "k3": "401 API key invalid"} {
			if got := outcome(v, request("/", "X-Api-Key: "+key)); got != want {
				t.Errorf("%s: %s", key, got)
			}
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	if got := outcome(v, request("/", "X-Api-Key: k2")); got != "503 temporarily unavailable" {
		t.Errorf("what is no key: %s", got)
	}
	trouble = errors.New("refused")
	clock = clock.Add(time.Hour)
	if got := outcome(v, request("/", "X-Api-Key: k1")); got != "503 temporarily unavailable" {
		t.Errorf("a store that is gone: %s", got)
	}
	if _, err := v.Verify(hasty{}, request("/", "X-Api-Key: k9")); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("too many wait: %v", err)
	}
}
