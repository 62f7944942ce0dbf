package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/admin"
	"github.com/moongate/moongate/core/gateway"
)

func checkVerb() verb {
	return verb{
		name: "check",
		does: "say what is wrong with a configuration and its scripts",
		about: `usage: moongate check [-c FILE]
       moongate check --diff [-c FILE] [--admin ADDRESS]

Reads the configuration and tries every script as a reload would, and serves nothing. All errors are printed with file and
line, the exit code is then 1.

With --diff the running gateway is asked what a reload would change: it compares what it serves with what its files say now.
Its admin listener is found as "moongate reload" finds it.`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			diff := fs.Bool("diff", false, "ask the running gateway what a reload would change")
			address := fs.String("admin", "", "`ADDRESS` the admin listener's, instead of the configuration's")
			return func(s streams) error {
				if *diff {
					return checkRunning(adminDoor(*file, *address), s.out)
				}
				if *address != "" {
					return usagef("--admin is of use with --diff alone")
				}
				return check(*file, s.out)
			}
		},
	}
}

// check tries the configuration here.
func check(file string, out io.Writer) error {
	c, err := conf.Load(file, conf.Options{})
	var g *gateway.Generation
	if err == nil {
		log := slog.New(slog.DiscardHandler)
		g, err = gateway.Check(gateway.Options{Pipeline: newScripting(log).build, Log: log}, c)
	}
	if err != nil {
		return fmt.Errorf("%s is wrong:\n%w", file, err)
	}
	printLines(out, "warning: ", texts(g.Warnings()))
	if refuseDemoSecret(c) != nil {
		fmt.Fprintln(out, "warning: it trusts the secret of the demo: run wants --demo for it")
	}
	fmt.Fprintf(out, "%s is right: %s, %s, %s\n", file, plural(len(c.Routes), "route"), plural(len(c.Upstreams), "upstream"),
		plural(len(c.Filters), "filter"))
	return nil
}

// checkRunning lets the running gateway try its own.
func checkRunning(d door, out io.Writer) error {
	var a admin.CheckAnswer
	if err := d.ask("/check", &a); err != nil {
		return err
	}
	printLines(out, "warning: ", a.Warnings)
	printLines(out, "", a.Errors)
	if !a.OK {
		return fmt.Errorf("a reload would be refused with %s", plural(len(a.Errors), "error"))
	}
	printLines(out, "", a.Changes)
	if len(a.Changes) == 0 {
		fmt.Fprintln(out, "a reload would change nothing")
	}
	return nil
}
