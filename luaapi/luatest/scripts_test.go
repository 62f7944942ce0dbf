package luatest_test

import (
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
