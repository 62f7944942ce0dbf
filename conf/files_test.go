package conf_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

var update = flag.Bool("update", false, "write the errors of testdata/*.bad.toml into them")

// wants begins the first lines of a bad file: one for each error, without the file's name.
const wants = "# wants "

// world is what stands beside a file of testdata: two scripts, one variable.
func world(name, text string) conf.Options {
	return conf.Options{
		Files: source.Map(map[string]string{
			name:                     text,
			"scripts/jwt.lua":        "return {}",
			"scripts/rate_limit.lua": "return {}",
		}),
		Env: func(name string) (string, bool) { return "word", name == "WORD" },
	}
}

func TestBadFilesAreRefusedWithAllTheirErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			var want []string
			for strings.HasPrefix(text, wants) {
				line, rest, _ := strings.Cut(text, "\n")
				want, text = append(want, strings.TrimPrefix(line, wants)), rest
			}
			_, err = conf.Load("x", world("x", text))
			if err == nil {
				t.Fatal("loads")
			}
			got := strings.ReplaceAll("\n"+err.Error(), "\nx:", "\n")[1:]
			if *update {
				head := wants + strings.ReplaceAll(got, "\n", "\n"+wants) + "\n"
				if err := os.WriteFile(file, []byte(head+text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}

func TestGoodFilesLoad(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := conf.Load("x", world("x", string(raw)))
		if err != nil {
			t.Errorf("%s:\n%v", file, err)
		} else if len(c.Warnings) > 0 {
			t.Errorf("%s warns:\n%v", file, c.Warnings)
		}
	}
}
