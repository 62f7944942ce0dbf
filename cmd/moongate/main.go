// Command moongate is a scriptable API gateway: Go does the fast and dangerous work, Lua scripts decide.
//
//	moongate run -c gateway.toml      serve
//	moongate help                     every verb
//
// One verb, one file; app.go is the only place that knows every part of the gateway.
package main

import (
	"os"
	_ "time/tzdata" // for where the system has none, such as a container of this program alone
)

func main() {
	os.Exit(command(os.Args[1:], streams{out: os.Stdout, err: os.Stderr}))
}
