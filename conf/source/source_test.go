package source_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/moongate/moongate/conf/source"
)

// write writes files below a new folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var scripts = map[string]string{
	"jwt.lua":                "jwt",
	"log.lua":                "log",
	"jwt_test.lua":           "a test",
	".#jwt.lua":              "an editor's",
	"README.md":              "text",
	"available/cors.lua":     "not live",
	"types/gw.d.lua":         "for editors",
	"lib/words.lua":          "module",
	"lib/deep/er.lua":        "deep module",
	"lib/words_test.lua":     "a test",
	"lib/.hidden/secret.lua": "hidden",
}

// places are the three places that the same scripts can come from.
func places(t *testing.T) map[string]struct {
	files source.Files
	dir   string
} {
	dir := write(t, scripts)
	fsys, memory := fstest.MapFS{}, map[string]string{}
	for name, text := range scripts {
		fsys["s/"+name] = &fstest.MapFile{Data: []byte(text)}
		memory["s/"+name] = text
	}
	return map[string]struct {
		files source.Files
		dir   string
	}{
		"disk": {source.Disk(), dir},
		"fs":   {source.FS(fsys), "s"},
		"map":  {source.Map(memory), "s"},
	}
}

func TestScriptsAreLiveOrModulesOrNeither(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			live, lib, err := source.ReadScripts(source.Take(place.files), place.dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range append(live, lib...) {
				got = append(got, s.Name+"="+s.Source)
				if !strings.HasSuffix(s.Path, ".lua") || !strings.HasPrefix(s.Path, place.dir) {
					t.Errorf("%s has the path %s", s.Name, s.Path)
				}
			}
			if want := []string{"jwt=jwt", "log=log", "deep.er=deep module", "words=module"}; !slices.Equal(got, want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestScriptsMayBeLinks(t *testing.T) {
	dir := write(t, map[string]string{"available/cors.lua": "cors", "..data/limit.lua": "limit"})
	for link, target := range map[string]string{"cors.lua": "available/cors.lua", "limit.lua": "..data/limit.lua"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	live, _, err := source.ReadScripts(source.Take(nil), dir)
	if err != nil || len(live) != 2 || live[0].Source != "cors" || live[1].Source != "limit" {
		t.Errorf("%v %v", live, err)
	}
	if err := os.Symlink("gone.lua", filepath.Join(dir, "broken.lua")); err != nil {
		t.Fatal(err)
	}
	live, _, err = source.ReadScripts(source.Take(nil), dir)
	if faults := source.Faults(err); len(faults) != 1 || !strings.HasSuffix(faults[0].Path, "broken.lua") || len(live) != 2 {
		t.Errorf("%v %v", live, err)
	}
}

func TestMissingFolderIsAFault(t *testing.T) {
	for name, place := range places(t) {
		_, _, err := source.ReadScripts(source.Take(place.files), place.dir+"/gone")
		if !errors.Is(err, fs.ErrNotExist) || len(source.Faults(err)) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPipesAndFoldersAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.lua")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skip("no named pipes here:", err)
	}
	for _, name := range []string{pipe, dir} {
		if _, err := source.Take(nil).ReadFile(name); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

func TestSnapshotNoticesEveryChange(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"a file written": func(dir string) error { return os.WriteFile(dir+"/a", []byte("longer"), 0o644) },
		"a file gone":    func(dir string) error { return os.Remove(dir + "/a") },
		"a file new":     func(dir string) error { return os.WriteFile(dir+"/new", nil, 0o644) },
		"a file replaced by one of the same size and time": func(dir string) error {
			info, err := os.Stat(dir + "/a")
			if err != nil {
				return err
			}
			return errors.Join(
				os.WriteFile(dir+"/.b", []byte("b"), 0o644),
				os.Chtimes(dir+"/.b", info.ModTime(), info.ModTime()),
				os.Rename(dir+"/.b", dir+"/a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"a": "a", "s/x": ""})
			s := source.Take(nil)
			if _, err := s.ReadFile(dir + "/a"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ReadDir(dir); err != nil {
				t.Fatal(err)
			}
			if !s.Holds() {
				t.Fatal("changed already")
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if s.Holds() {
				t.Error("not noticed")
			}
			if text, err := s.ReadFile(dir + "/a"); string(text) != "a" || err != nil {
				t.Errorf("the second reading gives %q, %v", text, err)
			}
		})
	}
}

func TestGlob(t *testing.T) {
	files := source.Map(map[string]string{
		"r/a.toml": "", "r/b.toml": "", "r/.c.toml": "", "r/d.txt": "", "r/x/e.toml": "", "q/f.toml": "",
	})
	for pattern, want := range map[string]string{
		"r/*.toml":    "r/a.toml r/b.toml",
		"r/[ab].toml": "r/a.toml r/b.toml",
		"r/.*.toml":   "r/.c.toml",
		"*/*.toml":    "q/f.toml r/a.toml r/b.toml",
		"r/*/e.toml":  "r/x/e.toml",
		"none/*.toml": "",
		"./r/a*":      "r/a.toml",
	} {
		got, err := source.Take(files).Glob(pattern)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v %v", pattern, got, err)
		}
	}
	if _, err := source.Take(files).Glob("r/[a"); !errors.Is(err, filepath.ErrBadPattern) {
		t.Error(err)
	}
}

func TestSnapshotNamesWhatItRead(t *testing.T) {
	s := source.Take(source.Map(map[string]string{"a/b": "", "c": ""}))
	_, err1 := s.ReadFile("c")
	_, err2 := s.ReadDir("a")
	_, err3 := s.ReadFile("gone")
	if err1 != nil || err2 != nil || !errors.Is(err3, fs.ErrNotExist) || !slices.Equal(s.Names(), []string{"a", "c"}) {
		t.Error(err1, err2, err3, s.Names())
	}
}
