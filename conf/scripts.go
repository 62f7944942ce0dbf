package conf

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Script is one Lua file. It is only text here: luaapi compiles and tries it.
type Script struct {
	Name   string // the file's name without .lua; a module's folders are joined with dots
	Path   string // for messages
	Source string
}

// Scripts is the folder of scripts and the bounds of the machines that run them.
type Scripts struct {
	Pos         Pos
	Dir         string        // resolved against the configuration file
	VMs         int           `key:"vms"` // most VMs of a stage
	Wait        time.Duration // for a free VM
	Budget      time.Duration // Lua time of one function
	MaxWaiting  int           // VMs that may wait in gw.http and gw.redis
	MaxString   int64         `unit:"bytes"` // bytes
	RetireAfter int           // uses of one VM
	// CacheCapacity is how many bytes gw.cache may keep for one filter.
	CacheCapacity int64    `unit:"bytes"`
	Env           []string // variables that gw.env may read
	HTTP          ScriptHTTP
	Mirror        ScriptMirror
	Delay         ScriptDelay

	// EnvValues holds those of them that were set when the configuration was read.
	EnvValues map[string]Secret `key:"env_values"`
	// Live holds the filters, Lib the modules that require reaches, both by name.
	Live map[string]Script `key:"-"`
	Lib  map[string]Script `key:"-"`

	read func(name string) ([]byte, error) // a function, so that no dump shows files
}

// ReadFile reads any file inside of the folder, for scripts that read data while they load; name is relative to it. It
// may be called at once.
func (s Scripts) ReadFile(name string) ([]byte, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is outside of the scripts folder", name)
	}
	if s.read == nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return s.read(filepath.Join(s.Dir, name))
}

// Equal tells whether the settings are the same, wherever they stand, and the files say the same.
func (s Scripts) Equal(other Scripts) bool { return same(s, other) }

// SettingsEqual tells whether all but the files is the same.
func (s Scripts) SettingsEqual(other Scripts) bool {
	s.Live, s.Lib, other.Live, other.Lib = nil, nil, nil, nil
	return same(s, other)
}

func defaultScripts() Scripts {
	return Scripts{
		Dir:         "scripts",
		VMs:         64,
		Wait:        100 * time.Millisecond,
		Budget:      50 * time.Millisecond,
		MaxWaiting:  1024,
		MaxString:   1 << 20,
		RetireAfter: 100_000,

		CacheCapacity: 16 << 20,
		HTTP:          defaultScriptHTTP(),
		Mirror:        defaultScriptMirror(),
		Delay:         defaultScriptDelay(),
	}
}

var scriptsSection = section[Scripts]{
	text("dir", func(s *Scripts) *string { return &s.Dir }, notEmpty),
	integer("vms", func(s *Scripts) *int { return &s.VMs }, 1, 4096),
	duration("wait", func(s *Scripts) *time.Duration { return &s.Wait }, 0, time.Minute),
	duration("budget", func(s *Scripts) *time.Duration { return &s.Budget }, time.Millisecond, 10*time.Second),
	integer("max_waiting", func(s *Scripts) *int { return &s.MaxWaiting }, 0, 1<<20),
	size("max_string", func(s *Scripts) *int64 { return &s.MaxString }, 1<<10, 64<<20),
	integer("retire_after", func(s *Scripts) *int { return &s.RetireAfter }, 1, 1<<31-1),
	size("cache_capacity", func(s *Scripts) *int64 { return &s.CacheCapacity }, 1<<20, 16<<30),
	list("env", func(s *Scripts) *[]string { return &s.Env }, variableName),
	sub("http", scriptHTTPSection, func(s *Scripts, p Pos) *ScriptHTTP { s.HTTP.Pos = p; return &s.HTTP }),
	sub("mirror", scriptMirrorSection, func(s *Scripts, p Pos) *ScriptMirror { s.Mirror.Pos = p; return &s.Mirror }),
	sub("delay", scriptDelaySection, func(s *Scripts, p Pos) *ScriptDelay { s.Delay.Pos = p; return &s.Delay }),
}

func notEmpty(text string) string {
	if text == "" {
		return "is empty: name something or leave the key away"
	}
	return ""
}

// variableName checks the form of an environment variable's name.
func variableName(text string) string {
	for i := range len(text) {
		if !isNameByte(text[i], i) {
			return `is no variable's name: write letters, digits and _, such as "REGION"`
		}
	}
	return notEmpty(text)
}
