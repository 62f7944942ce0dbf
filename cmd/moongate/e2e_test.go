package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the program itself a command of the scripts: the test binary runs main when it is called moongate.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"moongate": main, "environment": environment})
}

// stories are the scripts; those that start a gateway wait until there is one.
func stories(t *testing.T) []string {
	all, err := filepath.Glob("testdata/e2e/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newGateway(gatewayOptions{}); !errors.Is(err, errNotJoined) {
		return all
	}
	return slices.DeleteFunc(all, func(file string) bool {
		text, err := os.ReadFile(file)
		return err != nil || bytes.Contains(text, []byte("gateway start"))
	})
}

// environment prints the variables of a script, for the programs that it starts in the background.
func environment() {
	for _, v := range os.Environ() {
		fmt.Printf("%s\x00", v)
	}
}

// TestEndToEnd plays the scripts of testdata/e2e: each starts the real program with the configuration and the Lua scripts that
// stand in the same file. testdata/e2e/README.md lists the commands.
func TestEndToEnd(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: stories(t),
		Setup: func(env *testscript.Env) error {
			w := newWorld(env)
			env.Values[worldKey{}] = w
			env.Defer(w.end)
			env.Setenv("CHECKOUT", checkout)
			env.Setenv("NO_PROXY", "*")
			return os.MkdirAll(env.Getenv("TMPDIR"), 0o755)
		},
		Cmds:                commands,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// commands are what the scripts can say beyond the built-in words.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"gateway":  gatewayCommand,
	"demo":     demoCommand,
	"upstream": upstreamCommand,
	"hits":     hitsCommand,
	"http":     httpCommand,
	"raw":      rawCommand,
	"status":   statusCommand,
	"statuses": statusesCommand,
	"header":   headerCommand,
	"body":     bodyCommand,
	"json":     jsonCommand,
	"capture":  captureCommand,
	"keep":     keepCommand,
	"metric":   metricCommand,
	"log":      logCommand,
	"access":   accessCommand,
	"load":     loadCommand,
	"answers":  answersCommand,
	"only":     onlyCommand,
	"series":   seriesCommand,
	"flood":    floodCommand,
}
