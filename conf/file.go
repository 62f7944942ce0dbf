package conf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// File is a file that the configuration names, with its text as of the moment that the configuration was read. The zero value is no file.
type File struct {
	Pos  Pos
	Path string // resolved against the configuration file
	Text Secret

	key string // that names it, for errors of reading
}

// String tells the path and, in a few digits, what the file holds.
func (f File) String() string {
	if f.Path == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(f.Text))
	return fmt.Sprintf("%s (%s)", f.Path, hex.EncodeToString(sum[:4]))
}

// file is a key that names a file, which is read with the configuration.
func file[T any](key string, at func(*T) *File) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		if path, ok := b.text(key, v, notEmpty); ok {
			*at(into) = File{Pos: v.Pos, Path: path, key: key}
		}
	}}
}

// readFiles reads the files that listeners, upstreams and others name.
func (l *loader) readFiles(b *binder, c *Config) {
	for i := range c.Listeners {
		t := &c.Listeners[i].TLS
		for j := range t.Certificates {
			l.readNamed(b, &t.Certificates[j].Cert)
			l.readNamed(b, &t.Certificates[j].Key)
		}
		l.readNamed(b, &t.ClientCA)
	}
	for i := range c.Upstreams {
		t := &c.Upstreams[i].TLS
		for _, f := range []*File{&t.CA, &t.Cert, &t.Key} {
			l.readNamed(b, f)
		}
	}
	for i := range c.Limiters {
		lim := &c.Limiters[i]
		l.readNamed(b, &lim.KeysFile)
		b.readKeys(lim)
	}
	for i := range c.Redises {
		t := &c.Redises[i].TLS
		for _, f := range []*File{&t.CA, &t.Cert, &t.Key} {
			l.readNamed(b, f)
		}
	}
}

func (l *loader) readNamed(b *binder, f *File) {
	if f.Path == "" {
		return
	}
	f.Path = l.beside(f.Path)
	text, err := l.snap.ReadFile(f.Path)
	if err != nil {
		b.errs.Add(f.Pos, f.key, "cannot read %s", reason(f.Path, err))
		return
	}
	f.Text = Secret(text)
}
