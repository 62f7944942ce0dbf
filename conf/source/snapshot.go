package source

import (
	"io/fs"
	"maps"
	"os"
	"slices"
)

// Snapshot reads files once each and remembers what it read. It is not safe for concurrent use.
type Snapshot struct {
	files   Files
	texts   map[string][]byte
	stats   map[string]fs.FileInfo
	folders map[string][]string
}

// Take begins a snapshot of files; nil means the disk.
func Take(files Files) *Snapshot {
	if files == nil {
		files = Disk()
	}
	return &Snapshot{
		files:   files,
		texts:   map[string][]byte{},
		stats:   map[string]fs.FileInfo{},
		folders: map[string][]string{},
	}
}

// Files returns what the snapshot is taken of.
func (s *Snapshot) Files() Files { return s.files }

// ReadFile returns the file's text as of the first call for that name. The caller must not change it.
func (s *Snapshot) ReadFile(name string) ([]byte, error) {
	if text, ok := s.texts[name]; ok {
		return text, nil
	}
	info, err := s.files.Stat(name)
	if err != nil {
		return nil, err
	}
	text, err := s.files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s.texts[name], s.stats[name] = text, info
	return text, nil
}

// ReadDir returns the names in a folder, sorted; folders among them end in a slash.
func (s *Snapshot) ReadDir(name string) ([]string, error) {
	if names, ok := s.folders[name]; ok {
		return names, nil
	}
	names, err := s.list(name)
	if err == nil {
		s.folders[name] = names
	}
	return names, err
}

func (s *Snapshot) list(name string) ([]string, error) {
	entries, err := s.files.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name()+"/")
		} else {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Stat describes a file or folder as it is now.
func (s *Snapshot) Stat(name string) (fs.FileInfo, error) { return s.files.Stat(name) }

// Holds tells whether everything that was read is still as it was: then all of it was there at one moment.
func (s *Snapshot) Holds() bool {
	for name, was := range s.stats {
		now, err := s.files.Stat(name)
		if err != nil || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
			return false
		}
		if was.Sys() != nil && !os.SameFile(was, now) {
			return false
		}
		if int64(len(s.texts[name])) != now.Size() {
			return false
		}
	}
	for name, was := range s.folders {
		if now, err := s.list(name); err != nil || !slices.Equal(was, now) {
			return false
		}
	}
	return true
}

// Names returns every file and folder that was read, sorted.
func (s *Snapshot) Names() []string {
	names := slices.Collect(maps.Keys(s.stats))
	return slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(s.folders))))
}
