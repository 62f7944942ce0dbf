//go:build e2e

package stdlib_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// separator stands after each answer of lua5.1.
const separator = "\x1e\n\x1e"

// show renders values alike in both machines. Tables are shown with their array part and a few string keys.
const show = `
local function show(...)
  local out = {}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if type(v) == "number" then v = string.format("%.17g", v + 0)
      if v == "-0" then v = "0" end
      if v == "-nan" then v = "nan" end
    elseif type(v) == "string" then v = v:gsub("^[%w.]+:%d+: ", ""):gsub("^-nan", "nan") v = string.format("%q", v)
    elseif type(v) == "table" then
      local parts = {}
      for j = 1, #v do parts[j] = tostring(v[j]) end
      v = "{" .. table.concat(parts, ",") .. "}"
    elseif type(v) == "function" then v = "function"
    else v = tostring(v) end
    out[i] = v
  end
  if out[1] == "false" then out[2] = "error" end
  return table.concat(out, " ")
end
`

// TestAgainstLua51 runs each snippet here and in PUC Lua 5.1 and wants the same values, or an error in both.
func TestAgainstLua51(t *testing.T) {
	program, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Fatal("this test needs lua5.1 (apt-get install lua5.1): ", err)
	}
	snippets := corpus()
	want := runLua51(t, program, snippets)
	if len(want) != len(snippets) {
		t.Fatalf("lua5.1 answered %d of %d snippets", len(want), len(snippets))
	}
	b := base(t, vm.Options{})
	for i, s := range snippets {
		if got := runHere(t, b, s); got != want[i] {
			t.Errorf("%s\n  Lua 5.1: %s\n  here:    %s", s, want[i], got)
		}
	}
	t.Logf("%d snippets", len(snippets))
}

func runLua51(t *testing.T, program string, snippets []string) []string {
	var script strings.Builder
	script.WriteString(show)
	script.WriteString("local snippets = {\n")
	for _, s := range snippets {
		script.WriteString(luaQuote(s) + ",\n")
	}
	script.WriteString(`}
for _, s in ipairs(snippets) do
  local f, err = loadstring(s, "=s")
  if f then io.write(show(pcall(f)), "\30\n\30") else io.write("syntax error\30\n\30") end
end`)
	file := filepath.Join(t.TempDir(), "corpus.lua")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, file)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), separator), separator)
}

func runHere(t *testing.T, b *vm.Base, snippet string) string {
	source := show + "local function f(...) " + snippet + "\nend\nreturn function() return show(pcall(f)) end"
	s, err := vm.Compile("s.lua", source)
	if err != nil {
		return "syntax error"
	}
	v := vm.New(b)
	f, err := v.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Call(f.(*lua.LFunction))
	if err != nil {
		return "not caught: " + err.Error()
	}
	return got.String()
}

func luaQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%03d", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
