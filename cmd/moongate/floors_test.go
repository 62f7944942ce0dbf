package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/moongate/moongate/"

// floors is the house from top to bottom, as docs/house.md draws it: a package imports from the lines below its own alone.
var floors = [][]string{
	{"cmd/moongate", "cmd/bench", "luaapi/gen"},
	{"luaapi/luatest"},
	{"core/admin"},
	{"core/gateway"},
	{"core/proxy", "core/server", "luaapi"},
	{"core/server/h2test"},
	{"core/upstream", "luaapi/stdlib", "luaapi/lint"},
	{"core/http1", "luaapi/vm", "luaapi/store"},
	{"core/route", "core/limit", "core/auth", "core/auth/ldaptest", "core/balance", "core/discovery", "core/compress", "core/proxyproto"},
	{"core/redis", "core/redis/redistest"},
	{"core"},
	{"conf", "metrics", "core/xconnect"},
	{"conf/source"},
}

// exceptions are imports that go down but must not be.
var exceptions = map[string]string{
	"core/gateway": "luaapi", // the gateway knows no Lua: cmd joins them
	"luaapi":       "core/upstream",
}

// outside says where a library of others may be used.
var outside = map[string][]string{
	"github.com/yuin/gopher-lua":          {"luaapi"},
	"github.com/BurntSushi/toml":          {"conf"},
	"github.com/prometheus/client_golang": {"metrics"},
	"github.com/prometheus/client_model":  {"metrics"},
	"github.com/golang-jwt/jwt":           {"core/auth"},
	"github.com/go-ldap/ldap":             {"core/auth"},
	"github.com/go-asn1-ber/asn1-ber":     {"core/auth/ldaptest"},
	"golang.org/x/crypto":                 {"core/auth"},
	"github.com/tidwall/gjson":            {"core/route", "luaapi"},
	"github.com/klauspost/compress":       {"core/compress"},
	"github.com/andybalholm/brotli":       {"core/compress"},
	"github.com/redis/rueidis":            {"core/redis"},
	"golang.org/x/net":                    {"core/server/h2test"},
	"github.com/coreos/go-systemd":        {"cmd/moongate"},
	"golang.org/x/sys":                    {"cmd/moongate"},
}

func TestImportsOnlyGoDown(t *testing.T) {
	eachImport(t, func(pkg, file, imported string) {
		from := floorOf(pkg)
		if from < 0 {
			t.Errorf("%s has no floor: give package %s a place in the house, here and in docs/house.md", file, pkg)
			return
		}
		inner, ours := strings.CutPrefix(imported, module)
		if !ours {
			checkOutside(t, pkg, file, imported)
			return
		}
		if to := floorOf(inner); to <= from {
			t.Errorf("%s: %s (floor %d) imports %s (floor %d): imports only go down", file, pkg, from, inner, to)
		}
		if exceptions[pkg] == inner {
			t.Errorf("%s: %s never imports %s", file, pkg, inner)
		}
	})
}

func checkOutside(t *testing.T, pkg, file, imported string) {
	t.Helper()
	if !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return // the standard library
	}
	for library, rooms := range outside {
		if imported != library && !strings.HasPrefix(imported, library+"/") {
			continue
		}
		if !slices.ContainsFunc(rooms, func(room string) bool { return pkg == room || strings.HasPrefix(pkg, room+"/") }) {
			t.Errorf("%s: %s imports %s, which belongs to %s alone", file, pkg, imported, strings.Join(rooms, ", "))
		}
		return
	}
	t.Errorf("%s: %s imports %s, which has no room: say in floors_test.go where it belongs", file, pkg, imported)
}

func floorOf(pkg string) int {
	return slices.IndexFunc(floors, func(rooms []string) bool { return slices.Contains(rooms, pkg) })
}

// eachImport visits every import of every Go file of the product; tests may look anywhere.
func eachImport(t *testing.T, visit func(pkg, file, imported string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != root || d.Name() == "testdata" || d.Name() == "bin"):
			if name == root {
				return nil
			}
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		seen++
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			visit(path.Dir(file), file, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d files were looked at", seen)
	}
}
