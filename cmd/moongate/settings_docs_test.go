package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	settingsBlock = regexp.MustCompile("(?s)```toml\n(.*?)```")
	filterBlock   = regexp.MustCompile("(?s)```lua\n-- (scripts/[a-z_]+\\.lua)\n(.*?)```")
)

// elsewhere is what a block may leave to the rest of a configuration.
var elsewhere = regexp.MustCompile(`there is no (route|upstream|script|filter)\b|cannot read |environment variable [A-Z_]+ is not set`)

// TestSettingsInDocumentsAreUnderstood: every block of settings has keys and values that a gateway takes, for itself and its filters.
func TestSettingsInDocumentsAreUnderstood(t *testing.T) {
	blocks := 0
	for name, text := range documents(t) {
		for _, m := range settingsBlock.FindAllStringSubmatch(text, -1) {
			blocks++
			_, err := tryHere(settingsWith(t, parts(m[1]), nil))
			for _, line := range strings.Split(errorText(err), "\n") {
				if line != "" && !elsewhere.MatchString(line) {
					t.Errorf("%s: %s\nin\n%s", name, line, m[1])
				}
			}
		}
	}
	if blocks < 20 {
		t.Errorf("%d blocks", blocks)
	}
}

// TestPagesForNewcomersAreWholeGateways: the settings and filters of each page make one that starts.
func TestPagesForNewcomersAreWholeGateways(t *testing.T) {
	pages := 0
	for name, text := range documents(t) {
		if filepath.Dir(name) != filepath.Join("docs", "coming-from") || filepath.Base(name) == "README.md" {
			continue
		}
		pages++
		var settings string
		for _, m := range settingsBlock.FindAllStringSubmatch(text, -1) {
			settings += m[1]
		}
		filters := map[string]string{}
		for _, m := range filterBlock.FindAllStringSubmatch(text, -1) {
			filters[m[1]] = m[2]
		}
		if len(filters) != strings.Count(text, "```lua") {
			t.Errorf("%s: a filter does not say in which file it is", name)
		}
		if g, err := tryHere(settingsWith(t, settings, filters)); err != nil || len(g.Warnings()) > 0 {
			t.Errorf("%s: %v, %v", name, err, g.Warnings())
		}
	}
	if pages != 5 {
		t.Errorf("%d pages", pages)
	}
}

// parts gives a block that begins within an upstream or a route the beginning that it lacks.
func parts(block string) string {
	for name, begin := range map[string]string{"upstream": "endpoints = [\"http://127.0.0.1:1\"]\n", "route": "upstream = \"http://127.0.0.1:1\"\n"} {
		table, _, _ := strings.Cut(block, "[["+name+"]]")
		if strings.Contains(table, "["+name+".") {
			block = "[[" + name + "]]\nname = \"part\"\n" + begin + block
		}
	}
	return block
}

// settingsWith writes a configuration, with all filters that are shipped and some more beside it, and gives its name.
func settingsWith(t *testing.T, settings string, filters map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if filters == nil {
		filters = map[string]string{}
	}
	for _, pattern := range []string{"*.lua", "available/*.lua"} {
		shipped, err := filepath.Glob(filepath.Join("..", "..", "scripts", pattern))
		if err != nil || len(shipped) == 0 {
			t.Fatal(shipped, err)
		}
		for _, file := range slices.DeleteFunc(shipped, func(file string) bool { return !named(settings, file) }) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			filters["scripts/"+filepath.Base(file)] = string(text)
		}
	}
	filters["gateway.toml"] = settings
	for name, text := range filters {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "gateway.toml")
}

// named tells whether settings have a table of a script.
func named(settings, script string) bool {
	return strings.Contains(settings, "filter."+strings.TrimSuffix(filepath.Base(script), ".lua"))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
