package luaapi

import (
	lua "github.com/yuin/gopher-lua"
)

// res: the answer as it stands while on_response runs.

var responseFields = []field{
	{name: "status", kind: "integer", doc: "Status of the answer. Assigning one from 200 to 599 replaces it.",
		get: func(f *frame) lua.LValue { return number(float64(f.x.Response.Status)) }, set: setStatus},
	{name: "headers", kind: "gw.Headers", doc: "Header fields of the answer, as req.headers. Of Set-Cookie the value is the first line; `:all` lists them.",
		get: func(f *frame) lua.LValue {
			if f.phase == phaseResponse {
				return &f.headers
			}
			return &lua.LUserData{Value: (*responseHeaders)(f), Metatable: headersMeta}
		}},
	{name: "source", kind: `"upstream"|"filter"|"gateway"`, doc: "Who made the answer.",
		get: func(f *frame) lua.LValue { return lua.LString(f.x.Response.Source.String()) }},
	{name: "req", kind: "gw.Request", doc: "The request, read-only: path and query as they came, headers as on_request left them.",
		get: (*frame).requestView},
}

func setStatus(f *frame, L *lua.LState, v lua.LValue) {
	n, ok := v.(lua.LNumber)
	switch {
	case f.phase != phaseResponse:
		raise(L, "res.status can be changed in on_response only: the answer has gone")
	case !ok || n != lua.LNumber(int(n)) || n < 200 || n > 599:
		raise(L, "res.status is a whole number from 200 to 599, not "+describe(v))
	case f.x.Response.Started:
		raise(L, "res.status can no longer be changed: the answer's head has been sent")
	}
	f.x.Response.Status, f.x.Response.Reason = int(n), nil
}
