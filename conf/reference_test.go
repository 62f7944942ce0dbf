package conf_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

// reference is the text of gateway.toml; whole has the keys in it that stand as comments, too.
func reference(t *testing.T) (text, whole string) {
	t.Helper()
	raw, err := os.ReadFile("gateway.toml")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), regexp.MustCompile(`(?m)^#(["a-z\[])`).ReplaceAllString(string(raw), "$1")
}

// demo are the files around the reference.
func demo(text string) conf.Options {
	files := map[string]string{"conf/gateway.toml": text}
	for _, name := range []string{"access_log", "rate_limit", "jwt", "routing"} {
		files["scripts/"+name+".lua"] = "return {}"
	}
	for _, name := range []string{"site.crt", "site.key", "clients.crt", "partner-ca.crt", "client.crt", "client.key", "redis-ca.crt"} {
		files["conf/tls/"+name] = "PEM"
	}
	files["conf/partners.txt"] = "# partners of the first hour\nuser:zoe gold\n"
	return conf.Options{Files: source.Map(files), Env: noEnv}
}

func noEnv(string) (string, bool) { return "", false }

func TestReferenceLoadsAsItStandsAndWithAllItsKeys(t *testing.T) {
	text, whole := reference(t)
	for _, text := range []string{text, whole} {
		c, err := conf.Load("conf/gateway.toml", demo(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Warnings) > 0 {
			t.Error(c.Warnings)
		}
	}
}

func TestReferenceStatesTheDefaults(t *testing.T) {
	text, whole := reference(t)
	bare, err := conf.Load("conf/gateway.toml", demo(text))
	if err != nil {
		t.Fatal(err)
	}
	full, err := conf.Load("conf/gateway.toml", demo(whole))
	if err != nil {
		t.Fatal(err)
	}
	if !bare.HTTP.Equal(full.HTTP) || !bare.Pipeline.Equal(full.Pipeline) || !bare.Log.Equal(full.Log) {
		t.Error("[http], [pipeline] or [log] state other values than the defaults")
	}
	env := full.Scripts
	env.Env = nil
	if !bare.Scripts.SettingsEqual(env) {
		t.Error("[scripts] states other values than the defaults")
	}
	u, v := *bare.Upstream("user-service"), *full.Upstream("user-service")
	v.Timeouts.BodyTotal = 0
	if !u.Equal(&v) {
		t.Error("the first [[upstream]] states other values than the defaults")
	}
}

func TestReferenceNamesEveryKey(t *testing.T) {
	_, whole := reference(t)
	var tree map[string]any
	if _, err := toml.Decode(whole, &tree); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	walk(written, "", tree)
	for _, key := range conf.Keys() {
		if !written[key] {
			t.Errorf("%s is known but gateway.toml does not name it", key)
		}
	}
}

// named are the tables whose keys the user names.
var named = regexp.MustCompile(`^(filter|limiter|limiter\.NAME\.(tiers|keys)|redis|shared|metrics\.labels|route\.(header|query|cookie|body|filter))$`)

func walk(written map[string]bool, path string, value any) {
	if path != "" {
		written[path] = true
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if named.MatchString(path) {
				key = "NAME"
			}
			walk(written, strings.TrimPrefix(path+"."+key, "."), inner)
		}
	case []map[string]any:
		for _, inner := range v {
			walk(written, path, inner)
		}
	case []any:
		for _, inner := range v {
			walk(written, path, inner)
		}
	}
}

func TestDemoIsWhatItsRoutesPromise(t *testing.T) {
	text, _ := reference(t)
	o := demo(text)
	o.Env = func(name string) (string, bool) { return "7000", name == "DEMO_PORT" }
	c, err := conf.Load("conf/gateway.toml", o)
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]string{}
	for _, u := range c.Upstreams {
		ports[u.Name] = fmt.Sprint(u.Endpoints)
	}
	want := map[string]string{
		"user-service":  "[http://127.0.0.1:7001 http://127.0.0.1:7002 http://127.0.0.1:7003]",
		"order-service": "[http://127.0.0.1:7011 weight 3 http://127.0.0.1:7012]",
		"canary":        "[http://127.0.0.1:7021]",
		"login":         "[http://127.0.0.1:7031]",
		"dead":          "[http://127.0.0.1:7041]",
		"slow":          "[http://127.0.0.1:7051]",
	}
	if !maps.Equal(ports, want) {
		t.Errorf("endpoints %v", ports)
	}
	limit := c.Filter("rate_limit")
	settings, on := limit.On(c.Route("order"))
	rate, _ := settings.Get("rate")
	key, _ := settings.Get("key")
	if !on || rate.V != "5/s" || key.V != "ip" {
		t.Errorf("order: on %v, %v", on, settings)
	}
	if _, on := c.Filter("routing").On(c.Route("order")); on {
		t.Error("routing runs on a route that does not ask for it")
	}
	if settings, on := c.Filter("routing").On(c.Route("user")); !on || settings.Len() != 1 {
		t.Errorf("routing on user: %v, %v", on, settings)
	}
	if _, on := c.Filter("jwt").On(c.Route("dead")); on {
		t.Error("jwt runs on a route that turned it off")
	}
	if c.Scripts.Dir != "scripts" {
		t.Errorf("scripts in %s", c.Scripts.Dir)
	}
}

func TestMinimalExampleLoadsFromTheDisk(t *testing.T) {
	c, err := conf.Load("examples/minimal/gateway.toml", conf.Options{Env: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listeners[0].Address != "127.0.0.1:8080" || c.Admin.Address != "127.0.0.1:9180" {
		t.Errorf("listens on %v, admin on %v", c.Listeners, c.Admin)
	}
	if u := c.Upstream(c.Routes[0].Upstream); !u.Anonymous || u.Endpoints[0].Address != "127.0.0.1:9001" {
		t.Errorf("upstream %v", u)
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/hello.lua", []byte("return {}"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SCRIPTS": dir, "UPSTREAM": "http://127.0.0.1:7777"}
	c, err = conf.Load("examples/minimal/gateway.toml", conf.Options{Env: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(maps.Keys(c.Scripts.Live)); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("live scripts %v", got)
	}
}
