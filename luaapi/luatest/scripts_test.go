package luatest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

func TestEveryScriptPassesItsOwnTests(t *testing.T) {
	dir := "../../scripts"
	files, err := luatest.Tests(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { passes(t, file) })
	}
}

// TestLiveScriptsFitAScreen keeps those that every user meets first short enough to be read at once.
func TestLiveScriptsFitAScreen(t *testing.T) {
	scripts, err := filepath.Glob("../../scripts/*.lua")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if test, _ := filepath.Match("*_test.lua", filepath.Base(script)); !test && bytes.Count(text, []byte("\n")) >= 60 {
			t.Errorf("%s has %d lines", script, bytes.Count(text, []byte("\n")))
		}
	}
}

func TestEveryScriptHasTests(t *testing.T) {
	for _, pattern := range []string{"*.lua", "available/*.lua"} {
		scripts, err := filepath.Glob(filepath.Join("../../scripts", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range scripts {
			if found, _ := filepath.Match("*_test.lua", filepath.Base(script)); found {
				continue
			}
			test := script[:len(script)-len(".lua")] + "_test.lua"
			if found, _ := filepath.Glob(test); len(found) == 0 {
				t.Errorf("%s has no %s", script, filepath.Base(test))
			}
		}
	}
}
