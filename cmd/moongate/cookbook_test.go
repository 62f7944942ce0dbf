package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const cookbook = "../../docs/cookbook"

// TestCookbook plays the stories of docs/cookbook: NAME.txtar says what NAME.lua does, in the words of the end-to-end test. A story
// that brings no gateway.toml gets one route for all paths, to the upstream ONE.
func TestCookbook(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: cookbook,
		Setup: func(env *testscript.Env) error {
			env.Setenv("COOKBOOK", filepath.Join(checkout, "docs", "cookbook"))
			if err := layTable(env); err != nil {
				return err
			}
			return setUp(env, checkout)
		},
		Cmds:                commands,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// layTable puts the recipe in its scripts folder.
func layTable(env *testscript.Env) error {
	file := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-") + ".lua"
	recipe, err := os.ReadFile(filepath.Join(cookbook, file))
	if err != nil {
		return err
	}
	scripts := filepath.Join(env.WorkDir, "scripts")
	if err := os.MkdirAll(scripts, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(scripts, file), recipe, 0o600); err != nil {
		return err
	}
	settings := filepath.Join(env.WorkDir, "gateway.toml")
	if _, err := os.Stat(settings); err == nil {
		return nil
	}
	return os.WriteFile(settings, []byte(oneRoute), 0o600)
}

const oneRoute = `[scripts]
dir = "scripts"
wait = "5s"

[[route]]
name = "all"
path = "/**"
upstream = "${ONE}"
[route.timeouts]
connect = "10s"
`

func TestRecipesAreShortListedAndPlayed(t *testing.T) {
	recipes, err := filepath.Glob(filepath.Join(cookbook, "*.lua"))
	if err != nil || len(recipes) == 0 {
		t.Fatal(recipes, err)
	}
	list, err := os.ReadFile(filepath.Join(cookbook, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, recipe := range recipes {
		text, err := os.ReadFile(recipe)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n >= 40 {
			t.Errorf("%s has %d lines, a recipe has fewer than 40", recipe, n)
		}
		if _, err := os.Stat(strings.TrimSuffix(recipe, ".lua") + ".txtar"); err != nil {
			t.Errorf("%s has no story: %v", recipe, err)
		}
		if name := filepath.Base(recipe); !strings.Contains(string(list), "("+name+")") {
			t.Errorf("README.md of the cookbook does not list %s", name)
		}
	}
}
