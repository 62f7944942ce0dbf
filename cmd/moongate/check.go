package main

import (
	"encoding/json"
	"errors"
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
		about: `usage: moongate check [-c FILE] [--format text|json]
       moongate check --diff [-c FILE] [--admin ADDRESS]

Reads the configuration and tries every script as a reload would, and serves nothing. All errors are printed with file and
line, the exit code is then 1. Warnings are what loads and is probably not meant: names that do not exist, functions called with the wrong
sign or at the wrong time or not at all, settings that nothing reads, answers that are not returned, results that the gateway does not
take, state that the next request may not see. They leave the exit code alone.

With --format json all is one JSON object: ok, errors and warnings, each with file, line, column (where they are known), key and message.

With --diff the running gateway is asked what a reload would change: it compares what it serves with what its files say now.
Its admin listener is found as "moongate reload" finds it.`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			diff := fs.Bool("diff", false, "ask the running gateway what a reload would change")
			address := fs.String("admin", "", "`ADDRESS` the admin listener's, instead of the configuration's")
			format := fs.String("format", "text", "`FORMAT` to print in: text or json")
			return func(s streams) error {
				switch {
				case *format != "text" && *format != "json":
					return usagef("--format is text or json, not %q", *format)
				case *diff && *format != "text":
					return usagef("--diff prints text alone")
				case *diff:
					return checkRunning(adminDoor(*file, *address), s.out)
				case *address != "":
					return usagef("--admin is of use with --diff alone")
				case *format == "json":
					return checkJSON(*file, s.out)
				}
				return check(*file, s.out)
			}
		},
	}
}

// tryHere tries the configuration here, as a reload would.
func tryHere(file string) (*gateway.Generation, error) {
	log := slog.New(slog.DiscardHandler)
	scripts := newScripting(log)
	c, err := conf.Load(file, conf.Options{Also: scripts.faults})
	if err != nil {
		return nil, err
	}
	return gateway.Check(gateway.Options{Pipeline: scripts.build, Faults: scripts.faults, Log: log}, c)
}

func check(file string, out io.Writer) error {
	g, err := tryHere(file)
	if err != nil {
		return fmt.Errorf("%s is wrong:\n%w", file, err)
	}
	c := g.Config()
	printLines(out, "warning: ", texts(g.Warnings()))
	if refuseDemoSecret(c) != nil {
		fmt.Fprintln(out, "warning: "+demoSecretWarning)
	}
	fmt.Fprintf(out, "%s is right: %s, %s, %s\n", file, plural(len(c.Routes), "route"), plural(len(c.Upstreams), "upstream"),
		plural(len(c.Filters), "filter"))
	return nil
}

const demoSecretWarning = "it trusts the secret of the demo: run wants --demo for it"

// report is what check prints as JSON.
type report struct {
	OK       bool     `json:"ok"`
	Errors   []remark `json:"errors"`
	Warnings []remark `json:"warnings"`
}

// remark is one error or warning.
type remark struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func checkJSON(file string, out io.Writer) error {
	g, err := tryHere(file)
	r := report{OK: err == nil, Errors: remarks(err), Warnings: []remark{}}
	if err == nil {
		if len(g.Warnings()) > 0 {
			r.Warnings = remarks(g.Warnings())
		}
		if refuseDemoSecret(g.Config()) != nil {
			r.Warnings = append(r.Warnings, remark{File: file, Message: demoSecretWarning})
		}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	if !r.OK {
		return fmt.Errorf("%s is wrong: %s", file, plural(len(r.Errors), "error"))
	}
	return nil
}

func remarks(err error) []remark {
	list := []remark{}
	faults, ok := errors.AsType[conf.Errors](err)
	if err != nil && !ok {
		return append(list, remark{Message: err.Error()})
	}
	for _, e := range faults {
		list = append(list, remark{e.Pos.File, e.Pos.Line, e.Pos.Column, e.Key, e.Want})
	}
	return list
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
