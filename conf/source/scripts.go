package source

import (
	"path/filepath"
	"strings"
)

// Script is one Lua file.
type Script struct {
	Name   string
	Path   string
	Source string
}

// Fault is a file or folder that could not be read.
type Fault struct {
	Path string
	Err  error
}

// ScriptFaults are all that could not be read of a folder of scripts.
type ScriptFaults []Fault

// Error gives one line for each.
func (f ScriptFaults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Path + ": " + f[i].Err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is look at the causes.
func (f ScriptFaults) Unwrap() []error {
	errs := make([]error, len(f))
	for i := range f {
		errs[i] = f[i].Err
	}
	return errs
}

// Faults returns the single faults of an error of ReadScripts.
func Faults(err error) []Fault {
	faults, _ := err.(ScriptFaults)
	return faults
}

// libDir is the folder that require reaches.
const libDir = "lib"

// maxFolders bounds how deep modules may lie.
const maxFolders = 8

// ReadScripts reads a folder of scripts: every NAME.lua in it is live, and every one in lib/ is a module, those in
// folders below under their dotted name. NAME_test.lua, hidden files and all other folders are left alone; links are
// followed. The error is a ScriptFaults; what could be read is returned with it.
func ReadScripts(s *Snapshot, dir string) (live, lib []Script, err error) {
	r := reader{snap: s}
	live = r.folder(dir, "", 0)
	if names, err := s.ReadDir(dir); err == nil && contains(names, libDir) {
		lib = r.folder(filepath.Join(dir, libDir), "", maxFolders)
	}
	if len(r.faults) > 0 {
		err = r.faults
	}
	return live, lib, err
}

func contains(names []string, dir string) bool {
	for _, name := range names {
		if strings.TrimSuffix(name, "/") == dir {
			return true
		}
	}
	return false
}

// reader reads scripts and notes what it cannot read.
type reader struct {
	snap   *Snapshot
	faults ScriptFaults
}

func (r *reader) folder(dir, prefix string, deeper int) []Script {
	names, err := r.snap.ReadDir(dir)
	if err != nil {
		r.faults = append(r.faults, Fault{dir, err})
		return nil
	}
	var scripts []Script
	for _, name := range names {
		path := filepath.Join(dir, name)
		base, isLua := strings.CutSuffix(name, ".lua")
		folder, isFolder := strings.CutSuffix(name, "/")
		switch {
		case strings.HasPrefix(name, "."):
		case isFolder && deeper > 0:
			scripts = append(scripts, r.folder(path, prefix+folder+".", deeper-1)...)
		case isLua && !strings.HasSuffix(base, "_test"):
			if info, err := r.snap.Stat(path); err == nil && info.IsDir() {
				continue
			}
			text, err := r.snap.ReadFile(path)
			if err != nil {
				r.faults = append(r.faults, Fault{path, err})
				continue
			}
			scripts = append(scripts, Script{Name: prefix + base, Path: path, Source: string(text)})
		}
	}
	return scripts
}
