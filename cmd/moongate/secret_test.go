package main

import (
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

func loadFiles(t *testing.T, files map[string]string) *conf.Config {
	t.Helper()
	c, err := conf.Load("g.toml", conf.Options{Files: source.Map(files), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheDemoSecretIsRefusedWhereverItStands(t *testing.T) {
	c := loadFiles(t, map[string]string{"scripts/jwt.lua": "return {}", "g.toml": `
[[route]]
name = "one"
upstream = "http://127.0.0.1:1"
[route.filter.jwt]
secret = "` + demoSecret + `"
[filter.jwt]
secret = "` + demoSecret + `"
`})
	err := refuseDemoSecret(c)
	errs, ok := err.(conf.Errors)
	if !ok || len(errs) != 2 {
		t.Fatalf("got %v, want two errors", err)
	}
	if got := errs[0].Pos.String() + errs[0].Key; got != "g.toml:6route.one.filter.jwt.secret" {
		t.Errorf("the first is at %s", got)
	}
	if got := errs[1].Pos.String() + errs[1].Key; got != "g.toml:8filter.jwt.secret" {
		t.Errorf("the second is at %s", got)
	}
}
