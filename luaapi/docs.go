package luaapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moongate/moongate/luaapi/stdlib"
	"github.com/moongate/moongate/luaapi/vm"
)

// Example is a piece of Lua that shows a function of the binding table at work.
func Example(name string) string { return examples[name] }

// MayBeCalledIn tells whether a function may be called in on_request, on_response, on_log or init.
func MayBeCalledIn(f vm.Func, function string) bool {
	i := slices.Index(phaseNames, function)
	return i >= 0 && (f.Phases == 0 || f.Phases&(1<<i) != 0)
}

// Docs gives the files that are made of the binding table: pages for people and stubs for editors, by path in the project. testing is
// the table of what test files see.
func Docs(testing []vm.Func) map[string]string {
	files := map[string]string{"scripts/types/gw.d.lua": stubs()}
	index := "# What scripts see\n\n" + generated + "\nA filter is told in [scripts/README.md](../../scripts/README.md). These are its tools:\n\n"
	for _, page := range append(pages(), page{file: "testing", title: "Tests", funcs: testing,
		intro: "what `NAME_test.lua` sees beside the standard library; each test is a function that gets `t`."}) {
		files["docs/lua/"+page.file+".md"] = page.text()
		index += "- [" + page.title + "](" + page.file + ".md): " + page.intro + "\n"
	}
	files["docs/lua/README.md"] = index
	return files
}

const generated = "<!-- Made by `go run ./luaapi/gen` of the binding table in luaapi; changes here are lost. -->\n"

// page is one page of the documentation.
type page struct {
	file, title, intro string
	fields             []field
	owner              string
	funcs              []vm.Func
	notes              string // behind all else
}

func pages() []page {
	all := []page{
		{file: "request", title: "req", owner: "req", fields: requestFields, funcs: append(slices.Clone(requestMethods), queryMethods...),
			intro: "the request as it stands, for on_request; read-only as `res.req` and `entry.req`."},
		{file: "response", title: "res", owner: "res", fields: responseFields, funcs: responseMethods,
			intro: "the answer as it stands, for on_response."},
		{file: "entry", title: "entry", owner: "entry", fields: entryFields, funcs: entryMethods, intro: "what became of a request, for on_log."},
		{file: "context", title: "ctx", owner: "ctx", fields: contextFields,
			intro: "what filters leave for each other on one request, in all stages and phases. Any other name may be set to a string, number, boolean or table; " +
				"a table is kept as a read-only copy."},
	}
	for _, m := range modules {
		funcs := slices.Clone(m.funcs)
		if m.name == "metric" {
			funcs = append(funcs, metricMethods...)
		}
		all = append(all, page{file: m.name, title: "gw." + m.name, intro: m.intro, funcs: funcs})
	}
	return append(all, page{file: "stdlib", title: "The standard library", notes: differences, funcs: standardFuncs(),
		intro: "Lua 5.1's, with budgets; what reaches files, processes or the compiler is left out."})
}

// standardFuncs are those of the machine and of the library.
func standardFuncs() []vm.Func {
	base, err := vm.NewBase(vm.Options{Funcs: stdlib.Funcs()})
	if err != nil {
		return stdlib.Funcs()
	}
	return base.Funcs()
}

// differences tell where scripts meet something else than Lua 5.1's manual says; package stdlib holds the tests.
const differences = `
## Where it differs from Lua 5.1

- tostring and .. write whole numbers below 1e21 in full (PUC Lua: 1e+14); everything else has 14 digits. Where a number leaves Lua, in a
  header, JSON or a log line, it keeps every digit and has no exponent below 1e21.
- A new global after load is an error, and libraries, gw, conf and what require gives are read-only.
- A list holds 65,535 items; natives that make lists raise beyond, and t[65536] is a key like any other that # does not count.
- A string has at most 1 MiB, a function 50 ms, a call 100 coroutines; a spent budget is caught by no pcall. A coroutine ends with the call of the
  gateway that made it.
- string.format takes strings with NUL whole; a pattern may need 200 levels of recursion at most; gsub takes a lone % at the end of a
  replacement for nothing.
- tonumber knows no "inf" or "nan"; for i = "1", 2 wants numbers; -0 from arithmetic is 0.
- xpcall's handler runs after the function has ended; pairs walks handles too; rawlen is there; __gc and weak tables do nothing.
- A local of the file that a function assigns to belongs to one VM: the next request may run in another. The load warns of it.
`

func (p *page) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n%s\n", p.title, generated, capital(p.intro))
	if len(p.fields) > 0 {
		b.WriteString("\n| field | type | |\n|---|---|---|\n")
		for i := range p.fields {
			f := &p.fields[i]
			doc := f.doc
			if f.set != nil {
				doc += " *May be assigned to.*"
			}
			fmt.Fprintf(&b, "| `%s.%s` | `%s` | %s |\n", p.owner, f.name, strings.ReplaceAll(f.kind, "|", "\\|"), doc)
		}
	}
	for _, f := range p.funcs {
		writeFunc(&b, f)
	}
	b.WriteString(p.notes)
	return trimLines(b.String())
}

func writeFunc(b *strings.Builder, f vm.Func) {
	fmt.Fprintf(b, "\n## %s\n\n", signature(f))
	if f.Phases != 0 {
		var where []string
		for i, name := range phaseNames {
			if f.Phases&(1<<i) != 0 {
				where = append(where, name)
			}
		}
		fmt.Fprintf(b, "*In %s.* ", strings.Join(where, ", "))
	}
	b.WriteString(f.Doc + "\n")
	if len(f.Params)+len(f.Returns) > 0 {
		b.WriteString("\n")
	}
	for _, p := range f.Params {
		writeParam(b, "", p)
	}
	for _, p := range f.Returns {
		writeParam(b, "gives ", p)
	}
	if example := examples[f.Name]; example != "" {
		b.WriteString("\n```lua\n" + example + "\n```\n")
	}
}

func writeParam(b *strings.Builder, lead string, p vm.Param) {
	fmt.Fprintf(b, "- %s`%s` (`%s`%s)", lead, p.Name, p.Type, map[bool]string{true: ", optional"}[p.Optional])
	if p.Doc != "" {
		b.WriteString(": " + p.Doc)
	}
	b.WriteString("\n")
}

// signature is a function as it is called, such as "gw.limit.take(limiter, key[, cost])".
func signature(f vm.Func) string {
	var b strings.Builder
	b.WriteString(f.Name + "(")
	open := 0
	for i, p := range f.Params {
		if p.Optional {
			b.WriteString("[")
			open++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
	}
	return b.String() + strings.Repeat("]", open) + ")"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
