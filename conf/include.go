package conf

import (
	"fmt"
	"path/filepath"

	"github.com/moongate/moongate/conf/source"
)

// include reads the files that the main file names and lays them into its table: lists of tables grow, tables join, and
// a key that stands in two files is refused.
func (l *loader) include(main *Table) {
	v, ok := main.Get("include")
	if !ok {
		return
	}
	b := binder{pos: map[string]Pos{}}
	patterns := b.list("include", v, false, notEmpty)
	l.errs = append(l.errs, b.errs...)
	seen := map[string]bool{filepath.Clean(l.file): true}
	for _, pattern := range patterns {
		for _, file := range l.matching(v.Pos, pattern) {
			if seen[file] {
				continue
			}
			seen[file] = true
			if t := l.read(file, v.Pos); t != nil {
				if inner, ok := t.Get("include"); ok {
					l.errs.Add(inner.Pos, "include", "only counts in the main file: name the files there")
				}
				l.merge(main, t.without([]string{"include"}), "")
			}
		}
	}
}

// matching lists the files of one include, sorted. One that is no pattern must be there.
func (l *loader) matching(pos Pos, pattern string) []string {
	path := l.beside(pattern)
	if !source.IsPattern(pattern) {
		return []string{path}
	}
	files, err := l.snap.Glob(path)
	if err != nil {
		l.errs.Add(pos, "include", `%q is no pattern: write "routes/*.toml"`, pattern)
	}
	return files
}

// merge lays more into t.
func (l *loader) merge(t, more *Table, path string) {
	for key, v := range more.All() {
		full := join(path, key)
		was, ok := t.Get(key)
		if !ok {
			t.set(key, v)
			continue
		}
		oldTable, isTable := was.V.(*Table)
		newTable, both := v.V.(*Table)
		oldList, isList := tablesOf(was)
		newList, lists := tablesOf(v)
		switch {
		case isTable && both:
			l.merge(oldTable, newTable, full)
		case isList && lists:
			was.V = append(oldList[:len(oldList):len(oldList)], newList...)
			t.set(key, was)
		default:
			l.errs.Add(v.Pos, full, "is written in %s already: write it once", was.Pos)
		}
	}
}

// tablesOf returns the items of a list that holds only tables.
func tablesOf(v Value) ([]Value, bool) {
	items, ok := v.V.([]Value)
	for _, item := range items {
		if _, isTable := item.V.(*Table); !isTable {
			return nil, false
		}
	}
	return items, ok && len(items) > 0
}

// beside resolves a path against the folder of the configuration file.
func (l *loader) beside(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(l.file), path)
}

// read decodes one file; nil when it could not be read or is no TOML, for which an error was noted.
func (l *loader) read(file string, named Pos) *Table {
	raw, err := l.snap.ReadFile(file)
	if err != nil {
		if named.File == file {
			l.errs.Add(named, "", "cannot be read: %s", cause(err))
		} else {
			l.errs.Add(named, "include", "cannot read %s", reason(file, err))
		}
		return nil
	}
	if l.bytes += len(raw); l.bytes > source.MaxFile {
		l.errs.Add(named, "include", "the configuration is larger than %s", formatSize(source.MaxFile))
		return nil
	}
	return l.decode(file, raw)
}

// reason words an error of reading without naming the file twice.
func reason(file string, err error) string {
	return fmt.Sprintf("%s: %s", file, cause(err))
}
