package conf

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// unixScheme begins the address of a Unix socket; the path follows.
const unixScheme = "unix:"

// maxUnixPath is what the kernel takes, in bytes.
const maxUnixPath = 107

// isUnix tells whether a text is meant as a Unix socket.
func isUnix(text string) bool { return strings.HasPrefix(text, unixScheme) }

// unixSocket checks "unix:/path". The path is clean, so that one socket has one name.
func unixSocket(text string) string {
	file := strings.TrimPrefix(text, unixScheme)
	switch {
	case !strings.HasPrefix(file, "/") || strings.HasPrefix(file, "//"):
		return fmt.Sprintf(`%q has no absolute path: write "unix:/run/app.sock"`, shorten(text))
	case filepath.Clean(file) != file || file == "/" || strings.ContainsRune(file, 0):
		return fmt.Sprintf("%q is no clean path of a socket: write %q", shorten(text), unixScheme+filepath.Clean(strings.ReplaceAll(file, "\x00", "")))
	case len(file) > maxUnixPath:
		return fmt.Sprintf("the path has %d bytes, and a socket's has at most %d", len(file), maxUnixPath)
	}
	return ""
}

// Mode is the permissions of a file.
type Mode uint32

// String gives them in octal, as they are written.
func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// fileMode is a key that holds the permissions of a file in octal, as a string.
func fileMode[T any](key string, at func(*T) *Mode) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		if s, ok := b.text(key, v, octal); ok {
			n, _ := strconv.ParseUint(s, 8, 32)
			*at(into) = Mode(n)
		}
	}}
}

func octal(text string) string {
	if n, err := strconv.ParseUint(text, 8, 32); err != nil || n > 0o777 || n == 0 {
		return fmt.Sprintf(`%q is no mode: write "0660"`, shorten(text))
	}
	return ""
}

// peersOf is a key that holds networks and, for whoever comes over a Unix socket, "unix".
func peersOf[T any](key string, at func(*T) (*[]netip.Prefix, *bool)) field[T] {
	return field[T]{key: key, bind: func(b *binder, key string, v Value, into *T) {
		networks, unix := at(into)
		*networks, *unix = nil, false
		for _, text := range b.list(key, v, true, peer) {
			if text == "unix" {
				*unix = true
				continue
			}
			p, _ := parsePrefix(text)
			*networks = append(*networks, p)
		}
	}}
}

func peer(text string) string {
	if text == "unix" {
		return ""
	}
	return network(text)
}
