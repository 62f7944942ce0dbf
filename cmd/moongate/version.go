package main

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the release, set at link time by the Makefile; builds without it tell what the build itself knows.
var version string

func versionVerb() verb {
	return verb{
		name:  "version",
		does:  "print the version and what it was built with",
		about: "usage: moongate version",
		declare: func(*flag.FlagSet) func(streams) error {
			return func(s streams) error {
				fmt.Fprintf(s.out, "moongate %s %s %s/%s\n", release(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			}
		},
	}
}

// release is the version by the best source there is.
func release() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
