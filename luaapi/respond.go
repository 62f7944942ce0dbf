package luaapi

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.respond and gw.redirect: decisions to answer now.

// replyMark is what they return: on_request hands it on, and a decision that is not handed on is an error.
var replyMark = &lua.LUserData{Metatable: metatable("__index", goFunction(func(L *lua.LState) int {
	raise(L, "what gw.respond returns has no fields: return it from on_request")
	return 0
}))}

var respondFuncs = []vm.Func{
	{Name: "gw.respond", Phases: phaseRequest | phaseRequestChunk,
		Doc: "Answers the request now: `return gw.respond(...)`. A table is sent as JSON. A string below 400 is the body as it is, from 400 the " +
			"message of the standard error JSON; a body of its own kind is given with its Content-Type.",
		Params: list(p("status", "integer", "from 200 to 599"), opt("body", "string|table", "without one a refusal says what its status means"),
			opt("headers", "table<string, string|number|string[]>", "a list makes one line of each item")),
		Returns: list(p("reply", "gw.Reply", "to be returned from on_request or on_request_chunk")),
		Do:      respond},
	{Name: "gw.redirect", Phases: phaseRequest | phaseRequestChunk,
		Doc:     "Sends the client elsewhere: `return gw.redirect(url)`.",
		Params:  list(p("url", "string", "absolute, or a path"), opt("status", "integer", "301, 302 (default), 303, 307 or 308")),
		Returns: list(p("reply", "gw.Reply", "to be returned from on_request or on_request_chunk")),
		Do:      redirect},
}

func respond(a vm.Args) int {
	f := current(a.L)
	status := a.Int(1)
	if status < 200 || status > 599 || float64(status) != a.Number(1) {
		a.Bad(1, "a status is a whole number from 200 to 599, not %s", describe(a.Get(1)))
	}
	r := &core.Reply{Status: status, Source: core.FromFilter}
	if a.Has(3) {
		replyHeaders(a, r, a.Readable(3))
	}
	typed := r.Header.GetKind(core.KindContentType) != nil
	switch body := a.Get(2).(type) {
	case *lua.LNilType:
		if status >= 400 {
			r.IsError, r.Message = true, strings.ToLower(core.StatusText(status))
		}
	case *lua.LTable:
		text, err := encodeJSON(nil, body, stringLimit(a))
		if err != nil {
			a.Bad(2, "%s", err)
		}
		if r.Body = text; !typed {
			r.Header.Add("Content-Type", "application/json")
		}
	default:
		s, ok := text(body)
		switch {
		case !ok:
			a.Bad(2, "a body is a string or a table, not a %s", body.Type())
		case status >= 400 && !typed:
			r.IsError, r.Message = true, s
		default:
			if r.Body = core.Bytes(s); !typed && s != "" {
				r.Header.Add("Content-Type", "text/plain; charset=utf-8")
			}
		}
	}
	if len(r.Body) > 0 && !core.BodyAllowed(status) {
		a.Bad(2, "an answer of status %d has no body", status)
	}
	f.reply = r
	a.L.Push(replyMark)
	return 1
}

// maxReplyLines is about how many header lines an answer of a script may have.
const maxReplyLines = 256

// replyHeaders copies a table of headers, in the order of the script.
func replyHeaders(a vm.Args, r *core.Reply, headers *lua.LTable) {
	for key, v := headers.Next(lua.LNil); key != lua.LNil; key, v = headers.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			a.Bad(3, "headers have names, not %s", describe(key))
		}
		checkName(a.L, string(name))
		switch kind := core.KindOf(core.Bytes(string(name))); {
		case kind == core.KindContentLength || kind.Hop():
			a.Bad(3, "header %s is written by the gateway", string(name))
		}
		if r.Header.Len() > maxReplyLines {
			a.Bad(3, "more than %d lines", maxReplyLines)
		}
		lines, ok := v.(*lua.LTable)
		if !ok {
			r.Header.Add(string(name), headerText(a.L, string(name), v))
			continue
		}
		if lines = vm.Thaw(lines); lines.MaxN() > maxReplyLines {
			a.Bad(3, "more than %d lines of header %s", maxReplyLines, string(name))
		}
		for i := 1; i <= lines.MaxN(); i++ {
			r.Header.Add(string(name), headerText(a.L, string(name), lines.RawGetInt(i)))
		}
	}
}

func redirect(a vm.Args) int {
	f := current(a.L)
	url := argText(a, 1)
	status := a.OptInt(2, 302)
	switch status {
	case 301, 302, 303, 307, 308:
	default:
		a.Bad(2, "a redirection is 301, 302, 303, 307 or 308, not %s", describe(a.Get(2)))
	}
	checkValue(a.L, "the url of gw.redirect (header Location)", url)
	if url == "" {
		a.Bad(1, "the url is empty")
	}
	r := &core.Reply{Status: status, Source: core.FromFilter}
	r.Header.Add("Location", string(appendEscaped(nil, url, &urlByte)))
	f.reply = r
	a.L.Push(replyMark)
	return 1
}
