// Package xconnect has the standard library's HTTP/2 take extended CONNECT (RFC 8441), by which clients open WebSockets over HTTP/2. It is
// imported by whoever serves HTTP/2, and imports nothing but packages that net/http imports too.
//
// net/http has extended CONNECT and leaves it off, for the sake of programs whose WebSocket libraries do not know it. The one switch is
// http2xconnect=1 in the environment variable GODEBUG, which it reads when it is initialised. A Go program initialises its packages by
// their import paths, the first of those that have all they import (The Go Programming Language Specification, "Program
// initialization"), so this one always comes before net/http: github.com/... is less, and it waits for less. core/server has a
// test that the setting is sent.
package xconnect

import (
	"os"
	"strings"
)

const (
	variable = "GODEBUG"
	key      = "http2xconnect="
)

// before is what the variable was.
var before, was, asked = ask()

// ask sets the variable, unless whoever started the program says there what he wants.
func ask() (before string, was, asked bool) {
	before, was = os.LookupEnv(variable)
	if strings.Contains(before, key) {
		return before, was, false
	}
	text := key + "1"
	if before != "" {
		text = before + "," + text
	}
	return before, was, os.Setenv(variable, text) == nil
}

// Settle puts the variable back as it was, so that no other program is started with it, and tells whether it had been changed. It is called once net/http has been
// initialised, while packages still are.
func Settle() bool {
	switch {
	case !asked:
	case was:
		_ = os.Setenv(variable, before)
	default:
		_ = os.Unsetenv(variable)
	}
	return asked
}
