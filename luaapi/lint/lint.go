// Package lint reads a script as a reviewer would and says what its author probably did not mean: names that do not exist, functions called in
// the wrong way, at the wrong time or not at all, answers that are made and not given, state that the next request may not see.
//
// [Check] works on the syntax tree alone and runs nothing. What it cannot be sure of it does not mention: a name that is assigned twice, or that
// leaves the file's sight, could be anything.
package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/parse"

	"github.com/moongate/moongate/luaapi/vm"
)

// Finding is something that was probably not meant.
type Finding struct {
	Line    int    // counts from 1
	Column  int    // in bytes, counts from 1; 0 when the line has the word twice, or not
	Rule    string // one short word for each kind of finding, such as "phase"
	Message string
}

// World is what scripts see. It is not changed.
type World struct {
	// Funcs is the binding table: functions by dotted name and methods as "req:body".
	Funcs []vm.Func
	// Values are constants by dotted name: "math.pi".
	Values []string
	// Handles are the fields of what functions get, by the name of the handle.
	Handles map[string]map[string]Field
	// Functions are those of a script's table that the gateway calls.
	Functions map[string]Function
	// Later are functions of the binding table that keep a function which they are given and run it in another phase: "gw.time.every".
	Later map[string]vm.Phase
	// Load is the phase of the file itself.
	Load vm.Phase
	// Phases names the bits of a phase: Phases[0] is the name of 1<<0.
	Phases []string
	// Native are settings that the gateway itself reads.
	Native []string
}

// Field is one field of a handle.
type Field struct {
	Handle   string // what it is, when it is a handle: "headers"
	Writable bool
}

// Function is one that the gateway calls.
type Function struct {
	Phase  vm.Phase
	Params []string // the handles that it gets, "" for other values

	// Returns are the types of what it may return beside nothing; nil: anything. ReturnsText says it for people.
	Returns     []string
	ReturnsText string

	name string // in the script
}

// Check reads a script. One that cannot be parsed has no findings: whoever compiles it says why.
func Check(source string, w *World) []Finding {
	if rest, ok := strings.CutPrefix(source, "\uFEFF"); ok {
		source = rest
	}
	if strings.HasPrefix(source, "#") {
		source = "--" + source
	}
	chunk, err := parse.Parse(strings.NewReader(source), "")
	if err != nil {
		return nil
	}
	f := resolve(chunk)
	c := &checker{world: w, file: f, tree: newTree(w), lines: strings.Split(source, "\n")}
	c.settleRoles()
	c.settlePhases()
	c.run()
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(c.found)
}

// note adds a finding about a word.
func (c *checker) note(rule string, line int, word, message string) {
	c.found = append(c.found, Finding{Line: line, Column: c.column(line, word), Rule: rule, Message: message})
}

// column finds where a word stands in a line, when it stands there once.
func (c *checker) column(line int, word string) int {
	if line < 1 || line > len(c.lines) || word == "" {
		return 0
	}
	text, at := c.lines[line-1], 0
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return at
		}
		i += from
		from = i + len(word)
		if i > 0 && isWord(text[i-1]) && isWord(word[0]) || from < len(text) && isWord(text[from]) {
			continue
		}
		if at > 0 {
			return 0
		}
		at = i + 1
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
