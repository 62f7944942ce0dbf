// Package source answers where the text of a configuration comes from: a disk, an fs.FS or a map. It knows nothing of
// TOML or Lua. A Snapshot reads every file once and can tell whether anything changed meanwhile, so that configuration
// and scripts are of one moment.
package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxFile is the size in bytes beyond which a file is refused.
const MaxFile = 16 << 20

// ErrTooLarge is returned for a file of more than MaxFile bytes.
var ErrTooLarge = errors.New("larger than 16MiB")

// Files is a place that text comes from. Names are paths as the operating system writes them. Implementations may be
// used from several goroutines.
type Files interface {
	// ReadFile returns the whole file, following symbolic links; ErrTooLarge beyond MaxFile.
	ReadFile(name string) ([]byte, error)
	// ReadDir returns the entries of a folder, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file or folder, following symbolic links.
	Stat(name string) (fs.FileInfo, error)
}

// Disk returns the files of the operating system.
func Disk() Files { return disk{} }

type disk struct{}

func (disk) ReadFile(name string) ([]byte, error) {
	// Opening a named pipe would wait for its writer, so look first.
	info, err := os.Stat(name)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func (disk) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (disk) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }

// FS returns the files of fsys. Names are made relative to its root: a leading slash and steps above the root fall away.
func FS(fsys fs.FS) Files { return tree{fsys} }

type tree struct{ fsys fs.FS }

func (t tree) ReadFile(name string) ([]byte, error) {
	f, err := t.fsys.Open(inside(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func (t tree) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(t.fsys, inside(name)) }
func (t tree) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(t.fsys, inside(name)) }

// inside turns a path into one that an fs.FS takes.
func inside(name string) string {
	name = filepath.ToSlash(filepath.Join("/", name))
	if name == "/" {
		return "."
	}
	return name[1:]
}

// regular refuses folders, and pipes and devices, which would block or never end.
func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("is a folder, not a file")
	case !info.Mode().IsRegular():
		return fmt.Errorf("is no regular file (%s)", info.Mode().Type())
	}
	return nil
}

// readAll reads a regular file of bounded size.
func readAll(f fs.File) ([]byte, error) {
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		return nil, ErrTooLarge
	}
	return text, err
}
