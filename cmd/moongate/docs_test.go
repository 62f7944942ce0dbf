package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/metrics"
)

// documents are README.md, CHANGELOG.md and everything below docs, by path from the top of the checkout.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	texts := map[string]string{}
	read := func(name string) error {
		text, err := os.ReadFile(name)
		if err == nil {
			rel, _ := filepath.Rel(root, name)
			texts[rel] = string(text)
		}
		return err
	}
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		if err := read(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		return read(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	for name, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
}

var metricName = regexp.MustCompile(`moongate_[a-z0-9_]+`)

func TestDocumentsNameMetricsThatExist(t *testing.T) {
	known := metrics.Names()
	for name, text := range documents(t) {
		for _, word := range metricName.FindAllString(text, -1) {
			exists := slices.ContainsFunc(known, func(k string) bool {
				return word == k || strings.HasSuffix(word, "_") && strings.HasPrefix(k, word)
			})
			if !exists {
				t.Errorf("%s names the metric %s, which is not there", name, word)
			}
		}
	}
}

func TestDocumentsNameEveryVerb(t *testing.T) {
	readme := documents(t)["README.md"]
	for _, v := range verbs() {
		if v.name != "help" && !strings.Contains(readme, "moongate "+v.name) {
			t.Errorf("README.md does not name moongate %s", v.name)
		}
	}
}

// TestEveryAnswerOfTheReadmesFilterIsSeen: what README.md lets a filter answer, README.md also asks for; make e2e types it.
func TestEveryAnswerOfTheReadmesFilterIsSeen(t *testing.T) {
	readme := documents(t)["README.md"]
	answers := regexp.MustCompile(`gw\.respond\((\d+), "([^"]*)"\)`).FindAllStringSubmatch(readme, -1)
	if len(answers) == 0 {
		t.Fatal("README.md shows no filter that answers")
	}
	for _, a := range answers {
		if want := `{"code":` + a[1] + `,"message":"` + a[2] + `"`; !strings.Contains(readme, want) {
			t.Errorf("README.md never gets %s...", want)
		}
	}
}
