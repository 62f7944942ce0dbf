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
		notes: testingNotes,
		intro: "what `NAME_test.lua` sees beside the standard library and those functions of gw that need no request (gw." + strings.Join(plainModules, ", gw.") +
			"); each test is a function that gets `t`."}) {
		files["docs/lua/"+page.file+".md"] = page.text()
		index += "- [" + page.title + "](" + page.file + ".md): " + page.intro + "\n"
	}
	files["docs/lua/README.md"] = index
	return files
}

const generated = "<!-- Made by `go run ./luaapi/gen` of the binding table in luaapi; changes here are lost. -->\n"

// testingNotes stand behind the functions that tests have; a test of luatest runs the piece of Lua in them.
const testingNotes = `
## A whole test

For a filter that asks another upstream for the customer of an order:

` + "```lua" + `
test("adds the customer, asked for once", function(t)
  t.config { customers = "crm" }
  t.toml [=[
[[upstream]]
name = "crm"
endpoints = ["http://127.0.0.1:9"]
]=]
  t.answer { headers = { ["Content-Type"] = "application/json" }, body = '{"id":1,"customer_id":7}' }
  t.calls(function(call)
    t.equal(call.path, "/customers/7")
    return { body = '{"name":"Ann"}' }
  end)
  local res = t.request { path = "/orders/1", headers = { Accept = "application/json" } }
  t.equal(gw.json.decode(res.body).customer, "Ann")
  t.equal(res.forwarded.upstream, "main")
  t.equal(#res.calls, 1)
  t.equal(#t.request({ path = "/orders/1" }).calls, 0)
end)
` + "```" + `

A line of a test that fails has its place, and below it why the gateway failed the test's last request, if it did: a filter that breaks
answers 500, and its error is in res.error, too.
`

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
		switch m.name {
		case "metric":
			funcs = append(funcs, metricMethods...)
		case "ip":
			funcs = append(funcs, ipSetMethods...)
		}
		if m.name == "auth" {
			funcs = append(funcs, verifierMethods...)
		}
		if m.name == "http" {
			funcs = append(funcs, answerMethods...)
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

// differences tell where scripts meet something else than Lua 5.1's manual and its program say, and why; package stdlib holds the tests, among
// them Lua 5.1's own.
const differences = `
## Where it differs from Lua 5.1

Lua 5.1's own test suite passes but for what stands here, and random programs, patterns, formats and calls are compared with its program.

**So that one request sees nothing of another**

- A new global after load is an error, also by rawset; libraries, gw, conf and what require gives are read-only, and getmetatable gives "string" or
  false for what is the gateway's. setmetatable takes tables alone.
- load, loadstring, dofile, loadfile, module, getfenv, setfenv, newproxy, collectgarbage, io, debug, package, string.dump, os.execute, os.exit and
  their like are left out: they reach the compiler, files, processes or other scripts. print writes to the gateway's log.
- A coroutine ends with the call of the gateway that made it. A local of the file that a function assigns to belongs to one VM: the next request
  may run in another; the load warns of it.

**So that no script holds up or fills the gateway**

- A function has 50 ms (a spent budget is caught by no pcall), a string 1 MiB, a call 100 unfinished coroutines and 200 levels of calls, a pattern
  200 levels of recursion; all strings of one call together have 128 MiB. unpack, string.byte and their like return at most 8,000 values.
- A list holds 65,535 items, because the machine sets aside room for every index below: natives that make lists raise beyond, and t[65536] is
  a key like any other that # does not count.
- xpcall's handler runs after the function has ended, so that it cannot run on a full stack.

**So that values look alike wherever they go**

- tostring and .. write whole numbers below 1e21 in full (Lua 5.1: 1e+14); everything else has 14 digits. Where a number leaves Lua, in a
  header, JSON or a log line, it keeps every digit and has no exponent below 1e21.
- string.format takes strings with NUL whole, where C's program cuts them; a lone % at the end of a replacement of gsub stands for nothing.
- tonumber knows no "inf" or "nan", and with a base takes unsigned integers alone, as the manual says; the program wraps "-1" around.
- assert raises a message that is no string as it is. pairs walks handles too, and rawlen is there.

**Because the machine is another**

- for i = "1", 2 wants numbers. % is exact for large numbers. The last digit of math.exp and its like may differ.
- # of a table with holes may be another of its borders. A coroutine cannot yield by "return f()" where f is a renamed yield, nor across
  pcall, metamethods or iterators. Messages of errors are worded otherwise.
- goto is there, as a statement of Lua 5.2. arg in functions with ..., string.gfind, math.mod, table.getn, setn, foreach and foreachi, which
  Lua 5.0 had, are not. os.setlocale is not: texts are bytes, and classes of characters are those of C's locale.
- __gc, __mode (weak tables) do nothing.
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
