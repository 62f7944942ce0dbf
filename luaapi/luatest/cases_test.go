package luatest_test

import (
	"path/filepath"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

// TestScriptsThatPeopleRun holds the small jobs for which others write filters today.
func TestScriptsThatPeopleRun(t *testing.T) {
	files, err := luatest.Tests("testdata")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { passes(t, file) })
	}
}

// passes runs a file of tests.
func passes(t *testing.T, file string) {
	t.Helper()
	results, err := luatest.RunFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 {
		t.Error("it has no tests")
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %s", r.Name, r.Err)
		}
	}
}
