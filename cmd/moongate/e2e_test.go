package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the program itself a command of the scripts: the test binary runs main when it is called moongate.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"moongate": main, "environment": environment})
}

// environment writes the variables of a script to a file, for the programs that run beside the script.
func environment() {
	text, err := json.Marshal(os.Environ())
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
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
		Dir:                 "testdata/e2e",
		Setup:               func(env *testscript.Env) error { return setUp(env, checkout) },
		Cmds:                commands,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// setUp gives a script its world.
func setUp(env *testscript.Env, checkout string) error {
	w := newWorld(env)
	env.Values[worldKey{}] = w
	env.Defer(w.end)
	env.Setenv("CHECKOUT", checkout)
	env.Setenv("NO_PROXY", "*")
	return os.MkdirAll(env.Getenv("TMPDIR"), 0o755)
}

// commands are what the scripts can say beyond the built-in words.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"gateway":   gatewayCommand,
	"demo":      demoCommand,
	"upstream":  upstreamCommand,
	"hits":      hitsCommand,
	"got":       gotCommand,
	"cert":      certCommand,
	"http":      httpCommand,
	"raw":       rawCommand,
	"status":    statusCommand,
	"statuses":  statusesCommand,
	"header":    headerCommand,
	"body":      bodyCommand,
	"json":      jsonCommand,
	"capture":   captureCommand,
	"keep":      keepCommand,
	"health":    healthCommand,
	"cookie":    cookieCommand,
	"checked":   checkedCommand,
	"metric":    metricCommand,
	"log":       logCommand,
	"access":    accessCommand,
	"load":      loadCommand,
	"answers":   answersCommand,
	"only":      onlyCommand,
	"series":    seriesCommand,
	"flood":     floodCommand,
	"provider":  providerCommand,
	"directory": directoryCommand,
	"sign":      signCommand,
	"trip":      tripCommand,
	"fakeredis": fakeRedisCommand,
	"socket":    socketCommand,
}
