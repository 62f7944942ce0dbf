package source

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Map returns files held in memory, by name; folders exist where a name has them. The map must not change any more.
func Map(files map[string]string) Files {
	m := memory{}
	for name, text := range files {
		m[filepath.Clean(name)] = text
	}
	return m
}

type memory map[string]string

func (m memory) ReadFile(name string) ([]byte, error) {
	text, ok := m[filepath.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if len(text) > MaxFile {
		return nil, ErrTooLarge
	}
	return []byte(text), nil
}

func (m memory) Stat(name string) (fs.FileInfo, error) {
	name = filepath.Clean(name)
	if text, ok := m[name]; ok {
		return entry{name: filepath.Base(name), size: len(text)}, nil
	}
	if _, err := m.ReadDir(name); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return entry{name: filepath.Base(name), dir: true}, nil
}

func (m memory) ReadDir(name string) ([]fs.DirEntry, error) {
	prefix := filepath.Clean(name) + string(filepath.Separator)
	if name = filepath.Clean(name); name == "." || name == string(filepath.Separator) {
		prefix = strings.TrimPrefix(name, ".")
	}
	found := map[string]entry{}
	for file, text := range m {
		rest, ok := strings.CutPrefix(file, prefix)
		if !ok || prefix == "" && (filepath.IsAbs(file) || strings.HasPrefix(file, "..")) {
			continue
		}
		child, _, deeper := strings.Cut(rest, string(filepath.Separator))
		e := entry{name: child, dir: deeper}
		if !deeper {
			e.size = len(text)
		}
		found[child] = e
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	entries := make([]fs.DirEntry, 0, len(found))
	for _, e := range found {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// entry is a file or folder of a memory.
type entry struct {
	name string
	size int
	dir  bool
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return int64(e.size) }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
