package conf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one fault of a configuration. Key is the dotted key it concerns ("route.user.upstream"), empty when the
// fault concerns the file; Want says in one line what is wrong and what would be right.
type Error struct {
	Pos  Pos
	Key  string
	Want string
}

// Error gives "file:line: key: what is wrong and what would be right".
func (e Error) Error() string {
	if e.Key == "" {
		return e.Pos.String() + ": " + e.Want
	}
	return e.Pos.String() + ": " + e.Key + ": " + e.Want
}

// Errors is every fault that was found, in the order of the files. It is never empty when returned as an error.
type Errors []Error

// Error gives one line for each fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the single faults.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errs
}

// Add notes one fault.
func (e *Errors) Add(pos Pos, key, format string, args ...any) {
	*e = append(*e, Error{Pos: pos, Key: key, Want: fmt.Sprintf(format, args...)})
}

// Err sorts the faults by file, line and key, drops repetitions, and returns nil when there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	e.sort()
	return slices.Compact(e)
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b Error) int {
		return cmp.Or(
			cmp.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Want, b.Want))
	})
}
