package conf_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

// FuzzLoad holds Load to its promises for every text: it ends, it gives a configuration or errors, and every error is one
// line with a place.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"gateway.toml", "examples/*/gateway.toml", "testdata/*.toml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		c, err := conf.Load("x", world("x", text))
		if err == nil {
			if len(c.Routes) == 0 || len(c.Listeners) == 0 {
				t.Fatal("loads without a route or a listener")
			}
			for i := range c.Routes {
				if c.Upstream(c.Routes[i].Upstream) == nil {
					t.Fatalf("the route %q goes nowhere", c.Routes[i].Name)
				}
			}
			if lines := conf.Diff(c, c); len(lines) > 0 {
				t.Fatalf("differs from itself: %v", lines)
			}
			return
		}
		var errs conf.Errors
		if c != nil || !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("no Errors: %v", err)
		}
		for _, e := range errs {
			if e.Pos.File == "" || e.Pos.Line < 1 || e.Pos.Line > 1+strings.Count(text, "\n") || e.Want == "" {
				t.Fatalf("no place or no words: %+v", e)
			}
		}
	})
}

// BenchmarkLoad loads configurations with many routes, scripts aside.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		var text strings.Builder
		text.WriteString("[[upstream]]\nname = \"u\"\nendpoints = [\"http://127.0.0.1:1\"]\n")
		for i := range n {
			fmt.Fprintf(&text, "[[route]]\nname = \"route-%d\"\npath = \"/api/v%d/**\"\nmethod = [\"GET\"]\nheader = { X-V = \"2\" }\nupstream = \"u\"\nstrip_prefix = true\n[route.timeouts]\ntotal = \"5s\"\n", i, i)
		}
		o := conf.Options{Env: noEnv, Files: source.Map(map[string]string{"x": text.String()})}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conf.Load("x", o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
