package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/moongate/moongate/luaapi/luatest"
)

func testVerb() verb {
	return verb{
		name: "test",
		does: "run the tests of scripts",
		about: `usage: moongate test [FILE_test.lua | FOLDER]...

Runs the tests that stand beside scripts in NAME_test.lua, each against the real pipeline with its filter alone and an
upstream that the test speaks for. No configuration is read and nothing is listened on. A FOLDER has those of its
available/ too; without a name it is scripts. The exit code is 1 when a test fails.

  moongate test scripts/jwt_test.lua`,
		many: true,
		declare: func(fs *flag.FlagSet) func(streams) error {
			return func(s streams) error { return runTests(fs.Args(), s.out) }
		},
	}
}

// runTests runs the tests of the files and folders and prints a line for each file, and one for each test that fails.
func runTests(names []string, out io.Writer) error {
	if len(names) == 0 {
		names = []string{"scripts"}
	}
	files, err := testFiles(names)
	if err != nil {
		return err
	}
	tests, failed, broken := 0, 0, 0
	for _, file := range files {
		start := time.Now()
		results, err := luatest.RunFile(file)
		if err != nil {
			broken++
			fmt.Fprintf(out, "FAIL  %s  cannot be run: %v\n", file, err)
			continue
		}
		tests += len(results)
		n := printFailures(out, file, results, time.Since(start))
		failed += n
	}
	switch {
	case broken > 0:
		return fmt.Errorf("%s cannot be run", plural(broken, "file"))
	case failed > 0:
		return fmt.Errorf("%d of %s failed", failed, plural(tests, "test"))
	}
	return nil
}

// printFailures prints how a file went and counts the tests that failed.
func printFailures(out io.Writer, file string, results []luatest.Result, took time.Duration) (failed int) {
	var lines strings.Builder
	for _, r := range results {
		if r.Err != nil {
			failed++
			fmt.Fprintf(&lines, "      %s: %v\n", r.Name, r.Err)
			if r.Cause != nil {
				fmt.Fprintf(&lines, "        its last request failed: %v\n", r.Cause)
			}
		}
	}
	word := "ok  "
	if failed > 0 {
		word = "FAIL"
	}
	fmt.Fprintf(out, "%s  %s  %s  %s\n%s", word, file, plural(len(results), "test"), took.Round(time.Millisecond), lines.String())
	return failed
}

// testFiles are the files that the names stand for, each once.
func testFiles(names []string) (files []string, err error) {
	seen := map[string]bool{}
	for _, name := range names {
		found := []string{name}
		switch info, err := os.Stat(name); {
		case err != nil:
			return nil, err
		case info.IsDir():
			if found, err = luatest.Tests(name); err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%s: there are no tests, which are called NAME_test.lua", name)
			}
		case !strings.HasSuffix(name, "_test.lua"):
			return nil, fmt.Errorf("%s: a file of tests is called NAME_test.lua", name)
		}
		for _, file := range found {
			if !seen[file] {
				seen[file] = true
				files = append(files, file)
			}
		}
	}
	return files, nil
}
