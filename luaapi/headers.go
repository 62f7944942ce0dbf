package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
)

// req.headers and res.headers: the header list in place. Names compare without case; values are made when somebody asks.

var headersMeta = metatable("__index", goFunction(headersGet), "__newindex", goFunction(headersSet), "__pairs", goFunction(headersPairs))

// headersOf gives the list that a handle stands for, and whether it is the response's.
func headersOf(L *lua.LState) (f *frame, h *core.Header, response bool) {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		switch v := ud.Value.(type) {
		case *requestHeaders:
			f = (*frame)(v).alive(L)
			return f, f.requestHeader(), false
		case *responseHeaders:
			f = (*frame)(v).alive(L)
			return f, &f.x.Response.Header, true
		}
	}
	raise(L, "call it with a colon, on req.headers or res.headers")
	return nil, nil, false
}

// changeable is headersOf for a caller that changes the list; it raises where a change would have no effect.
func changeable(L *lua.LState) (f *frame, h *core.Header, response bool) {
	f, h, response = headersOf(L)
	switch {
	case !response:
		f.writable(L, "req.headers")
		f.x.Request.Keep()
	case f.phase != phaseResponse:
		raise(L, "res.headers can be changed in on_response only: the answer has gone")
	case f.x.Response.Started:
		raise(L, "res.headers can no longer be changed: the answer's head has been sent")
	}
	return f, h, response
}

func headerName(L *lua.LState, v lua.LValue) string {
	name, ok := v.(lua.LString)
	if !ok {
		raise(L, "a header's name is a string, not a "+v.Type().String())
	}
	return string(name)
}

func headersGet(L *lua.LState) int {
	f, h, response := headersOf(L)
	name := headerName(L, L.Get(2))
	switch name {
	case "all":
		L.Push(headersAll)
	case "add":
		L.Push(headersAdd)
	default:
		L.Push(headerValue(f, h, response, name))
	}
	return 1
}

// headerValue is nil when there is no such line; several lines are joined by ", ", those of Cookie by "; " (RFC 9110 section 5.3,
// RFC 9113 section 8.2.3). Of Set-Cookie, which cannot be joined (RFC 6265 section 3), it is the first.
func headerValue(f *frame, h *core.Header, response bool, name string) lua.LValue {
	key := core.Bytes(name)
	fields := h.Fields()
	for i := range fields {
		if !core.EqualFold(fields[i].Name, key) {
			continue
		}
		if fields[i].Kind == core.KindHost && !response {
			break
		}
		return joined(fields[i:], key)
	}
	if !response && core.KindOf(key) == core.KindHost {
		return str(f.requestHost())
	}
	return lua.LNil
}

// joined is the value of a name whose first line is fields[0].
func joined(fields []core.Field, key []byte) lua.LValue {
	first := &fields[0]
	if first.Kind == core.KindSetCookie {
		return str(first.Value)
	}
	var buf []byte
	for i := 1; i < len(fields); i++ {
		if !core.EqualFold(fields[i].Name, key) {
			continue
		}
		if buf == nil {
			buf = append(buf, first.Value...)
		}
		if first.Kind == core.KindCookie {
			buf = append(buf, "; "...)
		} else {
			buf = append(buf, ", "...)
		}
		buf = append(buf, fields[i].Value...)
	}
	if buf != nil {
		return str(buf)
	}
	return str(first.Value)
}

func headersSet(L *lua.LState) int {
	f, h, response := changeable(L)
	name := headerName(L, L.Get(2))
	v := L.Get(3)
	checkName(L, name)
	f.guard(L, name, response, v == lua.LNil)
	if v == lua.LNil {
		h.Del(name)
		return 0
	}
	h.Set(name, headerText(L, name, v))
	return 0
}

// guard raises where a header is the gateway's to write or another filter's to set.
func (f *frame) guard(L *lua.LState, name string, response, deleted bool) {
	kind := core.KindOf(core.Bytes(name))
	switch {
	case kind == core.KindOther:
		if !response && !f.m.stage.identity.allows(f.turn.filter, name) {
			raise(L, "header "+name+" is an identity header: only "+f.m.stage.identity.owners(name)+" may set it")
		}
	case kind == core.KindHost && !response:
		raise(L, "header Host is written by the gateway: assign to req.host")
	case kind == core.KindContentLength || kind == core.KindTransferEncoding:
		raise(L, "header "+name+" is written by the gateway: a body is changed by set_body")
	case kind.Hop() && !deleted:
		raise(L, "header "+name+" belongs to one connection, the gateway writes it: it would never arrive")
	case (kind == core.KindExpect || kind == core.KindTraceID && !response) && !deleted:
		raise(L, "header "+name+" is the gateway's: it would never arrive")
	}
}

var headersAll = goFunction(func(L *lua.LState) int {
	_, h, _ := headersOf(L)
	key := core.Bytes(headerName(L, L.Get(2)))
	all := newTable()
	for _, field := range h.Fields() {
		if core.EqualFold(field.Name, key) {
			all.Append(str(field.Value))
		}
	}
	L.Push(all)
	return 1
})

var headersAdd = goFunction(func(L *lua.LState) int {
	f, h, response := changeable(L)
	name := headerName(L, L.Get(2))
	checkName(L, name)
	f.guard(L, name, response, false)
	h.Add(name, headerText(L, name, L.Get(3)))
	return 0
})

// headersPairs walks the lines as they are now; the script may change the list meanwhile.
func headersPairs(L *lua.LState) int {
	_, h, _ := headersOf(L)
	list := make([]lua.LValue, 0, 2*h.Len())
	for _, field := range h.Fields() {
		list = append(list, str(field.Name), str(field.Value))
	}
	return pushPairs(L, list)
}
