package luaapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moongate/moongate/luaapi/vm"
)

// stubs are the annotations by which LuaLS knows what scripts see.
func stubs() string {
	var b strings.Builder
	b.WriteString("---@meta gw\n-- Made by `go run ./luaapi/gen` of the binding table in luaapi; changes here are lost.\n")
	b.WriteString(handWritten)
	writeClass(&b, "gw.Request", "req", requestFields, append(slices.Clone(requestMethods), queryMethods...))
	writeClass(&b, "gw.Response", "res", responseFields, responseMethods)
	writeClass(&b, "gw.Entry", "entry", entryFields, entryMethods)
	writeClass(&b, "gw.Context", "ctx", contextFields, nil)
	writeFields(&b, "gw.Answer", answerFields)
	writeMethods(&b, "answer", answerMethods)
	writeClass(&b, "gw.Metric", "metric", nil, metricMethods)
	writeClass(&b, "gw.IPSet", "set", nil, ipSetMethods)
	writeFields(&b, "gw.URL", urlPartFields)
	writeClass(&b, "gw.Verifier", "verifier", nil, verifierMethods)
	writeFields(&b, "gw.Identity", identityFields)
	writeFields(&b, "gw.Refusal", refusalFields)
	writeFields(&b, "gw.LimitInfo", limitInfoFields)
	writeFields(&b, "gw.CacheOptions", cacheOptionFields)
	writeFields(&b, "gw.Endpoint", endpointFields)
	writeFields(&b, "gw.EndpointState", endpointStateFields)
	writeFields(&b, "gw.TLS", tlsFields)
	b.WriteString("\n---@class gw\ngw = {}\n")
	for _, m := range modules {
		nested := false
		for _, f := range m.funcs {
			nested = nested || strings.Count(f.Name, ".") > 1
		}
		if nested {
			fmt.Fprintf(&b, "\n-- %s\ngw.%s = {}\n", capital(m.intro), m.name)
		}
		if m.name == "json" {
			b.WriteString("\n---What null is in JSON.\n---@type userdata\ngw.json.null = nil\n")
		}
		for _, f := range m.funcs {
			writeStub(&b, f)
		}
	}
	return trimLines(b.String())
}

// trimLines takes spaces off the ends of lines, where something had no description.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

const handWritten = `
---@class gw.Filter
---@field stage string stage in which the filter runs
---@field order? number place within the stage, default 50; ties by name
---@field config? table<string, any> settings: "string", number, integer, boolean, duration, size, rate, list, map, enum, secret
---@field identity? string[] headers that only this filter may set
---@field on_error? "fail"|"continue" what an error does to the request
---@field on_timeout? "fail"|"continue" what a function that spends its time budget does to it; default: as any other error
---@field leaves_bodies? boolean its functions of chunks leave bodies as they are: these keep their length and validators
---@field init? fun(conf: table): any once in each VM and for each distinct settings; what it gives is conf.state
---@field on_request? fun(req: gw.Request, ctx: gw.Context, conf: table): gw.Reply?
---@field on_response? fun(res: gw.Response, ctx: gw.Context, conf: table)
---@field on_request_chunk? fun(chunk: string, ctx: gw.Context, conf: table, last: boolean): (string|gw.Reply)? for each piece of the request's body
---@field on_response_chunk? fun(chunk: string, ctx: gw.Context, conf: table, last: boolean): string? for each piece of the answer's body
---@field on_log? fun(entry: gw.Entry, ctx: gw.Context, conf: table)

---@class gw.Reply

---@class gw.Headers
---@field [string] string?
---@field all fun(self: gw.Headers, name: string): string[]
---@field add fun(self: gw.Headers, name: string, value: string|number)

---@class gw.Query
---@field [string] string?

---@class gw.Cookies
---@field [string] string?

---@class gw.Call
---@field url? string
---@field upstream? string name of an upstream, instead of a URL
---@field path? string with an upstream; a query may follow
---@field key? string with an upstream, for balancers that hash
---@field method? string default GET, with a body POST
---@field query? table<string, string|number|string[]>
---@field headers? table<string, string|number|string[]>
---@field body? string
---@field json? any instead of body
---@field form? table<string, string|number|string[]> instead of body
---@field timeout? number|string seconds, or a text such as "500ms"

---@class gw.Redis
---@field [1] string NAME of a [redis.NAME]
---@field timeout? number|string seconds, or a text such as "50ms"
`

func writeClass(b *strings.Builder, class, owner string, fields []field, methods []vm.Func) {
	fmt.Fprintf(b, "\n---@class %s\n", class)
	for i := range fields {
		f := &fields[i]
		fmt.Fprintf(b, "---@field %s %s %s\n", f.name, f.kind, oneLine(f.doc))
	}
	if class == "gw.Context" {
		b.WriteString("---@field [string] any\n")
	}
	writeMethods(b, owner, methods)
}

func writeMethods(b *strings.Builder, owner string, methods []vm.Func) {
	fmt.Fprintf(b, "local %s = {}\n", owner)
	for _, f := range methods {
		writeStub(b, f)
	}
}

func writeFields(b *strings.Builder, class string, fields []vm.Param) {
	fmt.Fprintf(b, "\n---@class %s\n", class)
	for _, f := range fields {
		mark := ""
		if f.Optional {
			mark = "?"
		}
		fmt.Fprintf(b, "---@field %s%s %s %s\n", f.Name, mark, f.Type, f.Doc)
	}
}

func writeStub(b *strings.Builder, f vm.Func) {
	b.WriteString("\n---" + oneLine(f.Doc) + "\n")
	var names []string
	for _, p := range f.Params {
		mark := ""
		if p.Optional {
			mark = "?"
		}
		fmt.Fprintf(b, "---@param %s%s %s %s\n", p.Name, mark, p.Type, p.Doc)
		names = append(names, p.Name)
	}
	for _, p := range f.Returns {
		fmt.Fprintf(b, "---@return %s %s %s\n", p.Type, p.Name, p.Doc)
	}
	fmt.Fprintf(b, "function %s(%s) end\n", f.Name, strings.Join(names, ", "))
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
