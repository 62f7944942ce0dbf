package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/moongate/moongate/conf/source"
)

// Options are what Load may be told apart from the file. The zero value reads the disk and the process's environment.
type Options struct {
	Env    Environment  // nil: os.LookupEnv
	Files  source.Files // nil: the disk
	Listen string       // replaces the first listener's address
	Admin  string       // replaces the admin address

	// Also looks at what could be read of a configuration that is wrong, scripts among it: its errors are told with the others. nil: nobody.
	Also func(*Config) Errors
}

// Load reads a configuration with its includes and scripts. When anything is wrong the error is an Errors with all that
// was found, and the Config is nil. It may be called from several goroutines.
//
// All files are read as of one moment: when one changes meanwhile, Load begins anew.
func Load(file string, o Options) (*Config, error) {
	const tries = 5
	for range tries {
		l := newLoader(file, o)
		c, err := l.load(o)
		if l.snap.Holds() {
			return c, err
		}
	}
	return nil, Errors{{Pos: Pos{File: file, Line: 0}, Want: "the files change while they are read: load again when they are written"}}
}

// loader is one reading of everything.
type loader struct {
	decoder
	file  string
	snap  *source.Snapshot
	bytes int
}

func newLoader(file string, o Options) *loader {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	l := &loader{file: file, snap: source.Take(o.Files)}
	l.refs = references{env: o.Env, file: l.referred}
	return l
}

func (l *loader) load(o Options) (*Config, error) {
	top := l.read(l.file, Pos{File: l.file})
	if top == nil {
		return nil, l.errs.Err()
	}
	l.include(top)
	c := &Config{
		File:     l.file,
		Admin:    defaultAdmin(),
		HTTP:     defaultHTTP(),
		Pipeline: defaultPipeline(),
		Scripts:  defaultScripts(),
		Log:      defaultLog(),
	}
	c.Admin.Pos = Pos{File: l.file, Line: 1} // until it is written
	b := &binder{known: Keys(), pos: map[string]Pos{}}
	b.bindAll(top, c)
	b.override(c, o)
	l.readScripts(b, c)
	b.complete(c)
	l.readFiles(b, c)
	l.finish(b, c)
	if errs := append(l.errs, b.errs...); len(errs) > 0 {
		if o.Also != nil {
			errs = append(errs, o.Also(c)...)
		}
		return nil, errs.Err()
	}
	c.Warnings = append(l.warn, b.warn...)
	c.Warnings.sort()
	c.Sources = l.snap.Names()
	if !slices.Contains(c.Sources, c.Scripts.Dir) {
		c.Sources = append(c.Sources, c.Scripts.Dir)
	}
	c.positions = b.pos
	return c, nil
}

// referred reads a file that a string of the configuration refers to.
func (l *loader) referred(path string) (string, error) {
	path = l.beside(path)
	text, err := l.snap.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s", reason(path, err))
	}
	return string(text), nil
}

// bindAll binds what others build on first, then the rest as it was written.
func (b *binder) bindAll(top *Table, c *Config) {
	first := []string{"http", "pipeline", "upstream", "redis"}
	early := &Table{}
	for _, key := range first {
		if v, ok := top.Get(key); ok {
			early.set(key, v)
		}
	}
	configSection.bind(b, "", early, c)
	configSection.bind(b, "", top.without(first), c)
}

// override applies what was given beside the file.
func (b *binder) override(c *Config, o Options) {
	if len(c.Listeners) == 0 {
		c.Listeners = []Listener{{Pos: Pos{File: c.File, Line: 1}, Address: defaultListener, Mode: defaultMode, Protocol: ListenAuto, TLS: ListenerTLS{Client: ClientOff}}}
	}
	for _, given := range []struct {
		flag, address string
		into          *string
	}{{"--listen", o.Listen, &c.Listeners[0].Address}, {"--admin", o.Admin, &c.Admin.Address}} {
		if given.address == "" {
			continue
		}
		if wrong := listenAddress(given.address); wrong != "" {
			b.errs.Add(Pos{File: c.File, Line: 1}, given.flag, "%s", wrong)
			continue
		}
		*given.into = given.address
	}
}

// complete checks what needs more than one table.
func (b *binder) complete(c *Config) {
	b.checkHTTP(&c.HTTP)
	b.checkPipeline(&c.Pipeline)
	b.checkAdmin(c)
	b.completeLimiters(c)
	b.completeFilters(c)
	b.checkRouteFilters(c)
	b.checkRouteListeners(c)
	if len(c.Routes) == 0 && !b.written("route") {
		b.errs.Add(Pos{File: c.File, Line: 1}, "route", `there is no route, so nothing would be served: write [[route]] with path and upstream`)
	}
}

// finish resolves paths and takes the environment that scripts may read.
func (l *loader) finish(b *binder, c *Config) {
	if c.Log.Access != AccessStdout && c.Log.Access != AccessOff {
		c.Log.Access = l.beside(c.Log.Access)
	}
	c.Scripts.read = l.snap.Files().ReadFile
	c.Scripts.EnvValues = make(map[string]Secret)
	for _, name := range c.Scripts.Env {
		if value, ok := l.refs.env(name); ok {
			c.Scripts.EnvValues[name] = Secret(value)
		}
	}
}

// readScripts reads the folder of scripts. The default folder may be missing; one that was written must be there.
func (l *loader) readScripts(b *binder, c *Config) {
	c.Scripts.Dir = l.beside(c.Scripts.Dir)
	live, lib, err := source.ReadScripts(l.snap, c.Scripts.Dir)
	pos := b.where("scripts.dir", Pos{File: l.file, Line: 1})
	if errors.Is(err, fs.ErrNotExist) && !b.written("scripts.dir") && missing(l.snap, c.Scripts.Dir) {
		return
	}
	for _, fault := range source.Faults(err) {
		b.errs.Add(pos, "scripts.dir", "cannot read %s", reason(fault.Path, fault.Err))
	}
	c.Scripts.Live, c.Scripts.Lib = map[string]Script{}, map[string]Script{}
	for _, s := range live {
		if wrong := filterName("script")(s.Name); wrong != "" {
			b.errs.Add(Pos{File: s.Path, Line: 1}, "", "%s", wrong)
			continue
		}
		c.Scripts.Live[s.Name] = Script(s)
	}
	for _, s := range lib {
		c.Scripts.Lib[s.Name] = Script(s)
	}
}

func missing(snap *source.Snapshot, dir string) bool {
	_, err := snap.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// cause words an error of the file system without the path.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}
