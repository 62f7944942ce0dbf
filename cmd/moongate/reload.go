package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/moongate/moongate/core/admin"
)

func reloadVerb() verb {
	return verb{
		name: "reload",
		does: "make the running gateway read its configuration and scripts again",
		about: `usage: moongate reload [--admin ADDRESS] [-c FILE]

Asks the admin listener of a running gateway to reload and prints its answer. When anything is wrong, all errors are
printed, the exit code is 1 and the gateway goes on with what it has. SIGHUP does the same without an answer.

The address and the token are those of [admin] in the configuration; --admin and $MOONGATE_ADMIN_TOKEN go before.`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			address := fs.String("admin", "", "`ADDRESS` the admin listener's, instead of the configuration's")
			return func(s streams) error { return reload(adminDoor(*file, *address), s.out) }
		},
	}
}

func reload(d door, out io.Writer) error {
	var a admin.ReloadAnswer
	if err := d.ask("/reload", &a); err != nil {
		return err
	}
	printLines(out, "warning: ", a.Warnings)
	printLines(out, "", a.Errors)
	if !a.OK {
		return fmt.Errorf("refused with %s; the gateway goes on with what it had", plural(len(a.Errors), "error"))
	}
	if d.guess != nil {
		fmt.Fprintf(out, "warning: %s was asked, but [admin] of the configuration is not known: %s\n", d.address, d.guess)
	}
	fmt.Fprintf(out, "reloaded: generation %d serves, after %.0f ms\n", a.Generation, a.Milliseconds)
	return nil
}
