package conf_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

const before = `
[admin]
token = "old-token-of-the-operator"
[[upstream]]
name = "u"
endpoints = ["http://127.0.0.1:1"]
[[upstream]]
name = "gone"
endpoints = ["http://127.0.0.1:9"]
[limiter.l]
rate = "5/s"
[filter.jwt]
secret = "old-secret-of-the-tokens"
skip = ["/a"]
nested = { api_key = "old-key-in-a-table" }
[[route]]
name = "r"
path = "/r/**"
upstream = "u"
[[route]]
name = "gone"
path = "/gone"
upstream = "u"
`

func TestDiffNamesWhatAReloadChanges(t *testing.T) {
	after := strings.NewReplacer(
		"old-", "new-",
		`["http://127.0.0.1:1"]`, `["http://127.0.0.1:1", "http://127.0.0.1:2"]`+"\n[upstream.timeouts]\ntotal = \"5s\"\n[upstream.pool]\nconnections = 512\n",
		`"5/s"`, `"6/s"`,
		`["/a"]`, `["/a", "/b"]`+"\nleeway = \"5s\"",
		`path = "/r/**"`, `path_prefix = "/r"`+"\nmethod = [\"GET\"]\nstrip_prefix = true",
		`"gone"`, `"new"`,
	).Replace(before) + "[route.filter.rate_limit]\nrate = \"1/s\"\n[http]\nmax_body = \"20MiB\"\n[[listener]]\naddress = \":80\"\n"
	old, err := conf.Load("x", conf.Options{Env: noEnv, Files: source.Map(map[string]string{
		"x": before, "scripts/jwt.lua": "return {}", "scripts/rate_limit.lua": "return {}", "scripts/old.lua": "", "scripts/lib/l.lua": "1",
	})})
	if err != nil {
		t.Fatal(err)
	}
	new, err := conf.Load("x", conf.Options{Env: noEnv, Files: source.Map(map[string]string{
		"x": after, "scripts/jwt.lua": "return { }", "scripts/rate_limit.lua": "return {}", "scripts/new.lua": "", "scripts/lib/l.lua": "2",
	})})
	if err != nil {
		t.Fatal(err)
	}
	want := `~ admin.token: changed
~ filter.jwt.leeway: none -> "5s"
~ filter.jwt.nested: changed
~ filter.jwt.secret: changed
~ filter.jwt.skip: ["/a"] -> ["/a", "/b"]
~ http.max_body: 10MiB -> 20MiB
~ limiter.l.burst: 5 -> 6
~ limiter.l.rate: 5/s -> 6/s
- listener.127.0.0.1:8080
+ listener.:80
- route.gone
+ route.new
~ route.r.method: none -> [GET]
~ route.r.path: path /r/** -> path_prefix /r
~ route.r.strip_prefix: none -> true
~ script.jwt: changed
~ script.lib.l: changed
+ script.new
- script.old
- upstream.gone
+ upstream.new
~ upstream.u.endpoints: [http://127.0.0.1:1] -> [http://127.0.0.1:1, http://127.0.0.1:2]
~ upstream.u.pool.connections: 256 -> 512
~ upstream.u.timeouts.first_byte: 10s -> 5s
~ upstream.u.timeouts.total: 15s -> 5s`
	if got := strings.Join(conf.Diff(old, new), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if lines := conf.Diff(old, old); len(lines) != 0 {
		t.Errorf("nothing changed, but %v", lines)
	}
	if all := conf.Diff(nil, old); len(all) < 10 || slices.ContainsFunc(all, func(l string) bool { return l[0] != '+' }) {
		t.Errorf("from nothing: %v", all)
	}
}

func TestPlaceAndOrderDoNotCount(t *testing.T) {
	text, _ := os.ReadFile("gateway.toml")
	a, err := conf.Load("conf/gateway.toml", demo(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	moved := "# one line more\n" + strings.Replace(string(text), `key = "ip"`+"\nrate = \"1000/s\"", "rate = \"1000/s\"\n\n"+`key = "ip"`, 1)
	b, err := conf.Load("conf/gateway.toml", demo(moved))
	if err != nil {
		t.Fatal(err)
	}
	if lines := conf.Diff(a, b); len(lines) != 0 {
		t.Errorf("%v", lines)
	}
	for i := range a.Routes {
		if !a.Routes[i].Equal(&b.Routes[i]) {
			t.Errorf("route %s differs", a.Routes[i].Name)
		}
	}
	for i := range a.Upstreams {
		if !a.Upstreams[i].Equal(&b.Upstreams[i]) {
			t.Errorf("upstream %s differs", a.Upstreams[i].Name)
		}
	}
	for i := range a.Filters {
		if !a.Filters[i].Equal(b.Filters[i]) {
			t.Errorf("filter %s differs", a.Filters[i].Name)
		}
	}
	if !a.Scripts.Equal(b.Scripts) || !a.HTTP.Equal(b.HTTP) || !a.Admin.Equal(b.Admin) || !a.Metrics.Equal(b.Metrics) {
		t.Error("a part differs")
	}
}

// Every field of an upstream and a route counts in Equal: one that is changed by reflection makes a difference.
func TestEveryFieldCounts(t *testing.T) {
	c := load(t, before)
	u, r := *c.Upstream("u"), *c.Route("r")
	for i := range reflect.TypeOf(u).NumField() {
		other := u
		if change(reflect.ValueOf(&other).Elem().Field(i)) && u.Equal(&other) {
			t.Errorf("Upstream.%s does not count", reflect.TypeOf(u).Field(i).Name)
		}
	}
	for i := range reflect.TypeOf(r).NumField() {
		other := r
		if change(reflect.ValueOf(&other).Elem().Field(i)) && r.Equal(&other) {
			t.Errorf("Route.%s does not count", reflect.TypeOf(r).Field(i).Name)
		}
	}
}

// change gives a field another value; false when it is a place.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[conf.Pos]() {
			return false
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && change(f) {
				return true
			}
		}
		return false
	}
	return true
}

func TestSecretsAreNeverShown(t *testing.T) {
	o := world("x", before+`[filter.rate_limit]
store = "redis://${PASS}@host"
list = [{ password = "old-password-in-a-list" }]
[scripts]
env = ["PASS"]
`)
	o.Env = func(string) (string, bool) { return "old-value-of-the-environment", true }
	c, err := conf.Load("x", o)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "admin", c.Admin, "token", c.Admin.Token)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", *c, "admin", c.Admin, "token", c.Admin.Token)
	shown := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, part := range []any{*c, c, c.Admin, c.Filters, c.Filter("jwt"), c.Filter("jwt").Settings, *c.Filter("jwt").Settings, c.Scripts, c.Admin.Token} {
			shown += fmt.Sprintf(verb, part)
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown += string(text) + strings.Join(conf.Diff(nil, c), "\n")
	for _, part := range c.Filter("jwt").Settings.All() {
		shown += fmt.Sprint(part, part.Text())
	}
	hex := fmt.Sprintf("%x", "old-")
	if i := strings.Index(shown, "old-"); i >= 0 || strings.Contains(shown, hex) {
		t.Errorf("shown: %.80s", shown[max(i-20, 0):])
	}
	if c.Admin.Token != "old-token-of-the-operator" {
		t.Error("the token itself is lost")
	}
	if v, _ := c.Filter("jwt").Settings.Get("secret"); v.V != "old-secret-of-the-tokens" {
		t.Error("the secret itself is lost")
	}
}

func TestErrorsDoNotShowSecrets(t *testing.T) {
	errs := refused(t, "[admin]\ntoken = [\"old-token\"]\n[[upstream]]\nname = \"u\"\nendpoints = [\"ftp://user:old-pass@h\", \"http://user:old-pass@h:1:2\"]\n"+oneRoute)
	if strings.Contains(errs.Error(), "old-") {
		t.Error(errs)
	}
}
