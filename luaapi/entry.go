package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// entry: what became of an exchange, for on_log.

var entryFields = []field{
	{name: "method", kind: "string", doc: "Method as it went upstream.",
		get: func(f *frame) lua.LValue { return methodText(f.requestMethod()) }},
	{name: "path", kind: "string", doc: "Path as the route table saw it.",
		get: func(f *frame) lua.LValue { return str(f.x.Request.Path) }},
	{name: "host", kind: "string", doc: "Host that the client asked for.",
		get: func(f *frame) lua.LValue { return str(f.requestHost()) }},
	{name: "route", kind: "string?", doc: "Name of the route; nil when none matched.",
		get: func(f *frame) lua.LValue {
			if f.x.Route == nil {
				return lua.LNil
			}
			return lua.LString(f.x.Route.Name)
		}},
	{name: "upstream", kind: "string?", doc: "Name of the upstream that was asked; nil when none was.",
		get: func(f *frame) lua.LValue {
			if f.x.Endpoint == nil {
				return lua.LNil
			}
			return optional(f.x.Endpoint.Upstream)
		}},
	{name: "endpoint", kind: "string?", doc: "Endpoint that was asked, as access lines and metrics show it: `host:port` or `unix:/path`; nil when none was.",
		get: func(f *frame) lua.LValue {
			if f.x.Endpoint == nil {
				return lua.LNil
			}
			return lua.LString(f.x.Endpoint.Label())
		}},
	{name: "status", kind: "integer", doc: "Status of the answer; 499 when the client had left, 408 when it was too slow.",
		get: func(f *frame) lua.LValue { return number(float64(f.x.Response.Status)) }},
	{name: "source", kind: `"upstream"|"filter"|"gateway"|""`, doc: "Who made the answer.",
		get: func(f *frame) lua.LValue { return lua.LString(f.x.Response.Source.String()) }},
	{name: "duration_ms", kind: "number", doc: "Milliseconds from the request's head to the answer's last byte.",
		get: func(f *frame) lua.LValue { return milliseconds(f.x.Times.Start, f.x.Times.Done) }},
	{name: "upstream_ms", kind: "number?", doc: "Milliseconds from the end of the request filters to the upstream's first byte; nil without an answer of it.",
		get: func(f *frame) lua.LValue { return milliseconds(f.x.Times.Filtered, f.x.Times.FirstByte) }},
	{name: "bytes_in", kind: "integer", doc: "Bytes of the request's body that were read.",
		get: func(f *frame) lua.LValue { return number(float64(f.x.Request.Body.Taken())) }},
	{name: "bytes_out", kind: "integer", doc: "Bytes of the answer's body that were sent.",
		get: func(f *frame) lua.LValue { return number(float64(f.x.Response.BodySent)) }},
	{name: "client_ip", kind: "string", doc: "Address of the client; `unix` for one without, over a Unix socket.",
		get: func(f *frame) lua.LValue { return lua.LString(addressText(f.x.Request.ClientIP)) }},
	{name: "user", kind: "string?", doc: "Who the caller is, when a filter has said so.",
		get: func(f *frame) lua.LValue { return optional(f.x.User) }},
	{name: "request_id", kind: "string", doc: "Id of the request.",
		get: func(f *frame) lua.LValue { return str(f.x.RequestID) }},
	{name: "trace_id", kind: "string", doc: "Id of the trace.",
		get: func(f *frame) lua.LValue { return str(f.x.TraceID) }},
	{name: "error", kind: "string?", doc: "Why the gateway failed the request; nil when it did not.",
		get: func(f *frame) lua.LValue {
			if f.x.Err == nil {
				return lua.LNil
			}
			return lua.LString(f.x.Err.Error())
		}},
	{name: "req", kind: "gw.Request", doc: "The request, read-only.", get: (*frame).requestView},
	{name: "res", kind: "gw.Response", doc: "The answer, read-only.", get: (*frame).responseView},
}

// milliseconds between two instants, to the microsecond; nil when one of them never came.
func milliseconds(from, to core.Instant) lua.LValue {
	if from == 0 || to == 0 {
		return lua.LNil
	}
	return lua.LNumber(float64(to.Sub(from).Microseconds()) / 1000)
}

var entryMethods = []vm.Func{
	{Name: "entry:write", Phases: phaseLog,
		Doc: "Writes the access line of this request: the gateway's own members, and those of extra behind them. Without a call there is no line, and a " +
			"second one raises: a request has one line. Secrets are masked as in gw.log. An extra that cannot be written, such as one " +
			"of more than 64 KiB, raises, and the line goes out without it. It never waits.",
		Params: []vm.Param{{Name: "extra", Type: "table<string, any>", Optional: true, Doc: "further members"}},
		Do:     writeEntry},
}

// maxExtra bounds what scripts add to a line, in bytes.
const maxExtra = 64 << 10

// writtenKey marks an exchange whose line is written. Scripts do not see it: it is no Lua value.
const writtenKey = "\x00written"

func writeEntry(a vm.Args) int {
	f := entryOf(a)
	if f.x.Vars.Get(writtenKey) != nil {
		a.Raise("entry:write was called before, here or by another filter: a request has one line")
	}
	var extra []byte
	if a.Has(2) {
		m := f.m
		out, err := encodeMasked(m.cache.buffer[:0], a.Table(2), maxExtra, m.stage.mask)
		if err != nil {
			f.writeLine(nil) // what a client sent must not keep its request out of the log
			a.Bad(2, "%s", err)
		}
		if m.cache.buffer = out; out[0] != '{' {
			f.writeLine(nil)
			a.Bad(2, "a table with names expected, got a list")
		}
		if extra = out[:len(out)-1]; len(extra) > 1 {
			extra[0] = ','
		} else {
			extra = nil
		}
	}
	f.writeLine(extra)
	if cap(f.m.cache.buffer) > maxExtra {
		f.m.cache.buffer = nil
	}
	return 0
}

// writeLine writes the exchange's one line.
func (f *frame) writeLine(extra []byte) {
	f.m.stage.services.AccessLine(f.x, extra)
	f.x.Vars.Set(writtenKey, true)
}

func entryOf(a vm.Args) *frame {
	if ud, ok := a.L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*entryHandle); ok {
			return (*frame)(h).alive(a.L)
		}
	}
	raise(a.L, "call it with a colon: "+a.Func.Name+"(...)")
	return nil
}
