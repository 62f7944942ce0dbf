// Command gen writes what is made of the binding table: scripts/types/gw.d.lua and docs/lua/*.md. It is run in the project's folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
)

func main() {
	for name, text := range luaapi.Docs(luatest.Funcs()) {
		if err := write(name, text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
