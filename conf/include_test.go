package conf_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

func TestIncludesJoinInOrder(t *testing.T) {
	route := func(name string) string {
		return fmt.Sprintf("[[route]]\nname = %q\npath = \"/%s\"\nupstream = \"u\"\n", name, name)
	}
	c, err := conf.Load("etc/gateway.toml", conf.Options{Env: noEnv, Files: source.Map(map[string]string{
		"etc/gateway.toml":         "include = [\"routes/*.toml\", \"../shared.toml\", \"none/*\", \"*.toml\"]\n" + route("main") + "[http]\nmax_head = \"8KiB\"\n",
		"etc/routes/b.toml":        "# b\n" + route("b1") + route("b2"),
		"etc/routes/a.toml":        route("a") + "[route.timeouts]\nconnect = \"2s\"\n",
		"etc/routes/.a.toml":       "hidden = true",
		"etc/routes/a.toml~":       "backup = true",
		"etc/routes/deep/c.toml":   "deeper = true",
		"shared.toml":              "[[upstream]]\nname = \"u\"\nendpoints = [\"http://127.0.0.1:1\"]\n[http]\nmax_url = \"4KiB\"\n[filter.jwt]\nx = 1\n",
		"etc/scripts/jwt.lua":      "return {}",
		"etc/scripts/lib/util.lua": "return {}",
	})})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range c.Routes {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"main", "a", "b1", "b2"}) {
		t.Errorf("routes %v", names)
	}
	if c.HTTP.MaxHead != 8<<10 || c.HTTP.MaxURL != 4<<10 {
		t.Errorf("%+v", c.HTTP)
	}
	for key, want := range map[string]string{
		"route.b2.path":            "etc/routes/b.toml:8",
		"route.a.timeouts.connect": "etc/routes/a.toml:6",
		"http.max_head":            "etc/gateway.toml:7",
		"http.max_url":             "shared.toml:5",
		"filter.jwt.x":             "shared.toml:7",
	} {
		if pos := c.Pos(key); pos.String() != want {
			t.Errorf("%s in %s, want %s", key, pos, want)
		}
	}
	want := "etc,etc/gateway.toml,etc/routes,etc/routes/a.toml,etc/routes/b.toml,etc/scripts,etc/scripts/jwt.lua,etc/scripts/lib,etc/scripts/lib/util.lua,shared.toml"
	if got := strings.Join(c.Sources, ","); got != want {
		t.Errorf("sources %s", got)
	}
}

func TestIncludesThatDoNotFit(t *testing.T) {
	load := func(files map[string]string) error {
		files["x"] = "include = [\"a\", \"b*\"]\n" + oneRoute + "[http]\nmax_head = \"8KiB\"\n"
		_, err := conf.Load("x", conf.Options{Env: noEnv, Files: source.Map(files)})
		return err
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"missing", map[string]string{"b": "# b\n"}, "x:1: include: cannot read a: file does not exist"},
		{"empty", map[string]string{"a": ""}, "a:1: the file is empty: it was cut or not written yet"},
		{"a key twice", map[string]string{"a": "\n[http]\nmax_head = \"9KiB\"\n"}, "a:3: http.max_head: is written in x:6 already: write it once"},
		{"a filter's key twice", map[string]string{"a": "[filter.f]\nk = 1\n", "b1": "[filter.f]\nk = 1\n", "scripts/f.lua": ""}, "b1:2: filter.f.k: is written in a:2 already: write it once"},
		{"a route twice", map[string]string{"a": oneRoute}, "x:2: route: the name \"all\" is taken"},
		{"nested", map[string]string{"a": "include = [\"b\"]\n"}, "a:1: include: only counts in the main file: name the files there"},
		{"two kinds", map[string]string{"a": "[route]\nname = \"x\"\n"}, "a:1: route: is written in x:2 already: write it once"},
		{"syntax in two", map[string]string{"a": "x = \n", "b1": "y = \n"}, "a:1: the TOML is wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := load(c.files)
			if c.name == "a route twice" {
				c.want = "a:2: route: the name \"all\" is taken by the route in x:2: give this one another"
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if c.name == "syntax in two" && !strings.Contains(err.Error(), "\nb1:1: the TOML is wrong") {
				t.Error(err)
			}
		})
	}
}
