package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// verb is one thing that the program does. Verbs stand in the table below; each has a file of its own.
type verb struct {
	name  string
	does  string // one line for the list of verbs
	about string // what --help says above the flags
	takes string // what it wants beside flags, such as "FILE"; "": nothing
	many  bool   // it takes any number of arguments, which it finds in its flags
	// declare adds the verb's flags to a set and returns what runs once they are parsed.
	declare func(fs *flag.FlagSet) func(streams) error
	given   *string // where that goes
}

// streams is where a verb prints: results to out, all else to err.
type streams struct{ out, err io.Writer }

func verbs() []verb {
	return []verb{runVerb(), checkVerb(), reloadVerb(), statusVerb(), explainVerb(), tokenVerb(), testVerb(), limitSimVerb(), demoVerb(), versionVerb(), helpVerb()}
}

// The exit codes of the program.
const (
	exitOK    = 0
	exitFail  = 1 // it was understood and did not work
	exitUsage = 2 // it was not understood
)

// usageError is an error of the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// command runs the program with its arguments and returns the exit code.
func command(args []string, s streams) int {
	if len(args) == 0 {
		printHelp(s.err)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-v", "-version", "--version":
		name = "version"
	}
	for _, v := range verbs() {
		if v.name == name {
			return v.call(rest, s)
		}
	}
	fmt.Fprintf(s.err, "moongate: there is no %q; the verbs are %s\n", name, verbNames())
	return exitUsage
}

// call parses the verb's flags, runs it and turns its error into a message and an exit code.
func (v verb) call(args []string, s streams) int {
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	do := v.declare(fs)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		v.printHelp(s.out)
		return exitOK
	case err != nil:
		return v.fail(s, usagef("%s", doubleDash(err.Error())))
	}
	if v.takes != "" {
		if fs.NArg() == 0 {
			return v.fail(s, usagef("wants %s", v.takes))
		}
		*v.given = fs.Arg(0)
		if err := fs.Parse(fs.Args()[1:]); err != nil { // flags may stand behind it
			return v.fail(s, usagef("%s", doubleDash(err.Error())))
		}
	}
	if !v.many && fs.NArg() > 0 {
		return v.fail(s, usagef("does not know what to do with %q", fs.Arg(0)))
	}
	if err := do(s); err != nil {
		return v.fail(s, err)
	}
	return exitOK
}

func (v verb) fail(s streams, err error) int {
	if _, ok := err.(usageError); ok {
		fmt.Fprintf(s.err, "moongate %s: %v\nSee: moongate %s --help\n", v.name, err, v.name)
		return exitUsage
	}
	fmt.Fprintf(s.err, "moongate %s: %v\n", v.name, err)
	return exitFail
}

// doubleDash writes the flag that an error of package flag names as the documents write it.
func doubleDash(text string) string {
	return strings.NewReplacer(": -", ": --", "flag -", "flag --").Replace(text)
}

func verbNames() string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return strings.Join(names, ", ")
}

// defaultConfig is the configuration that verbs read unless -c names another.
const defaultConfig = "conf/gateway.toml"

// configFlag declares -c.
func configFlag(fs *flag.FlagSet) *string {
	return fs.String("c", env("MOONGATE_CONFIG", defaultConfig), "`FILE` with the configuration; $MOONGATE_CONFIG says another")
}

// env is an environment variable or, when it is unset or empty, what stands for it.
func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
