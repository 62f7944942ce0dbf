package source

import (
	"path/filepath"
	"slices"
	"strings"
)

// IsPattern tells whether a path has one of the signs * ? [ in it.
func IsPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// Glob returns the files that match a pattern of filepath.Match, sorted. A pattern's sign never matches a leading dot,
// so that an editor's hidden leftovers stay outside. Nothing found is no error; a malformed pattern is
// filepath.ErrBadPattern.
func (s *Snapshot) Glob(pattern string) ([]string, error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, err
	}
	dir, base := filepath.Split(pattern)
	dir = filepath.Clean(dir)
	folders := []string{dir}
	if IsPattern(dir) {
		var err error
		if folders, err = s.Glob(dir); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, folder := range folders {
		names, err := s.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, name := range names {
			name = strings.TrimSuffix(name, "/")
			hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".")
			if ok, _ := filepath.Match(base, name); ok && !hidden {
				found = append(found, filepath.Join(folder, name))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}
