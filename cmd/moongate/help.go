package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const programHelp = `Moongate is a scriptable API gateway. It takes HTTP requests, finds their route, runs the Lua filters of that route
and forwards to one of the route's endpoints. What may pass, how often and where to is decided by the scripts.

  moongate run -c conf/gateway.toml --demo     serve, with upstreams to try it on
  moongate check -c conf/gateway.toml          say what is wrong with a configuration and its scripts
  moongate explain /api/user/7                 tell which route takes a request, and why no other does
  moongate reload                              make the running gateway read both again
  moongate status                              tell how the running gateway is

Verbs:
`

const programHelpEnd = `
Exit codes: 0 done, 1 it did not work (the message says why), 2 the command line was not understood.
Signals of run: HUP reloads, TERM and INT drain and end.

moongate VERB --help tells more.
`

func helpVerb() verb {
	return verb{
		name:  "help",
		does:  "tell what the program does, or what a verb does: help VERB",
		about: "usage: moongate help [VERB]",
		many:  true,
		declare: func(fs *flag.FlagSet) func(streams) error {
			return func(s streams) error { return help(fs.Args(), s.out) }
		},
	}
}

func help(about []string, out io.Writer) error {
	if len(about) == 0 {
		printHelp(out)
		return nil
	}
	for _, v := range verbs() {
		if v.name == about[0] {
			v.printHelp(out)
			return nil
		}
	}
	return usagef("there is no verb %q; the verbs are %s", about[0], verbNames())
}

func printHelp(out io.Writer) {
	io.WriteString(out, programHelp)
	for _, v := range verbs() {
		fmt.Fprintf(out, "  %-10s %s\n", v.name, v.does)
	}
	io.WriteString(out, programHelpEnd)
}

// printHelp tells what a verb does and lists its flags.
func (v verb) printHelp(out io.Writer) {
	fmt.Fprintln(out, strings.TrimSpace(v.about))
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	v.declare(fs)
	first := true
	fs.VisitAll(func(f *flag.Flag) {
		if first {
			fmt.Fprintln(out, "\nFlags:")
			first = false
		}
		kind, text := flag.UnquoteUsage(f)
		text = strings.TrimPrefix(text, kind+" ")
		dashes := "--"
		if len(f.Name) == 1 {
			dashes = "-"
		}
		if f.DefValue != "" && f.DefValue != "false" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(out, "  %-18s %s\n", strings.TrimSpace(dashes+f.Name+" "+kind), text)
	})
}
