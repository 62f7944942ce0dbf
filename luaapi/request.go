package luaapi

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

// req: the request as it stands while on_request runs, and as it came afterwards.

var requestFields = []field{
	{name: "method", kind: "string", doc: "Method in capitals, such as `GET`. Assigning one changes what goes upstream.",
		get: func(f *frame) lua.LValue { return methodText(f.requestMethod()) }, set: setMethod},
	{name: "path", kind: "string", doc: "Path without query as the route table saw it: encoded unreserved characters are decoded, `%2F` stays. " +
		"Assigning one changes what goes upstream and never matches again.", get: getPath, set: setPath},
	{name: "raw_path", kind: "string", doc: "Path byte for byte as it came.",
		get: func(f *frame) lua.LValue { return str(f.x.Request.RawPath) }, instead: ": assign to req.path"},
	{name: "query", kind: "gw.Query", doc: "Query parameters: `req.query.k` is the first value of k, nil when there is none. " +
		"Assigning to a parameter changes what goes upstream; nil takes it away.",
		get:     func(f *frame) lua.LValue { return &lua.LUserData{Value: (*queryHandle)(f), Metatable: queryMeta} },
		instead: ": assign to req.query[name], or to req.raw_query"},
	{name: "raw_query", kind: "string", doc: "Query without the question mark, byte for byte; empty when there is none. Assigning replaces it whole; nil takes it away.",
		get: func(f *frame) lua.LValue { return str(f.rawQuery()) }, set: setRawQuery},
	{name: "host", kind: "string", doc: "Host that the client asked for, with its port. An assigned one goes out where the upstream's `host` is `client`.",
		get: func(f *frame) lua.LValue { return str(f.requestHost()) }, set: setHost},
	{name: "scheme", kind: "string", doc: "`http` or `https`, after trusted proxies were heard.",
		get: func(f *frame) lua.LValue { return lua.LString(f.x.Request.Scheme) }},
	{name: "client_ip", kind: "string", doc: "Address of the client, after trusted proxies were heard; `unix` for one without, over a Unix socket.",
		get: func(f *frame) lua.LValue { return lua.LString(addressText(f.x.Request.ClientIP)) }},
	{name: "remote_addr", kind: "string", doc: "Address and port of the connection's other end; `unix` over a Unix socket.",
		get: func(f *frame) lua.LValue {
			if !f.x.Request.RemoteAddr.IsValid() {
				return lua.LString(overUnix)
			}
			return lua.LString(f.x.Request.RemoteAddr.String())
		}},
	{name: "headers", kind: "gw.Headers", doc: "Header fields, names in any case: nil when absent, else a string, several lines joined by `, `. " +
		"Assigning sets one line, nil deletes. `:all(name)` lists the lines, `:add(name, value)` adds one, `pairs` walks them.",
		get: func(f *frame) lua.LValue {
			if f.phase == phaseRequest {
				return &f.headers
			}
			return &lua.LUserData{Value: (*requestHeaders)(f), Metatable: headersMeta}
		}, instead: ": assign to req.headers[name]"},
	{name: "cookies", kind: "gw.Cookies", doc: "Cookies of the request by name, the first of each. Assigning changes what goes upstream; nil takes one away.",
		get: func(f *frame) lua.LValue { return &lua.LUserData{Value: (*cookiesHandle)(f), Metatable: cookiesMeta} }},
	{name: "params", kind: "table<string, string>", doc: "What the `{name}` segments of the route's path stood for, encoded as in req.path: gw.url.decode gives the text.",
		get: func(f *frame) lua.LValue { return &lua.LUserData{Value: (*paramsHandle)(f), Metatable: paramsMeta} }},
	{name: "bearer", kind: "string?", doc: "Token of `Authorization: Bearer`, in any case; nil when there is none, empty when the header is malformed or sent twice.",
		get: getBearer},
	{name: "tls", kind: "gw.TLS?", doc: "What the client's TLS connection told: `version`, `cipher`, `server_name`; of the client's certificate `subject`, `common_name`, `fingerprint` and the lists `organizations`, `sans`, `uris`. " +
		"nil on a plain one.",
		get: getTLS},
	{name: "route", kind: "string?", doc: "Name of the route; nil when none matched.",
		get: func(f *frame) lua.LValue {
			if f.x.Route == nil {
				return lua.LNil
			}
			return lua.LString(f.x.Route.Name)
		}},
}

// commonMethods are boxed once.
var commonMethods = map[string]lua.LValue{
	"GET": lua.LString("GET"), "POST": lua.LString("POST"), "PUT": lua.LString("PUT"), "DELETE": lua.LString("DELETE"),
	"HEAD": lua.LString("HEAD"), "PATCH": lua.LString("PATCH"), "OPTIONS": lua.LString("OPTIONS"),
}

func methodText(method string) lua.LValue {
	if v := commonMethods[method]; v != nil {
		return v
	}
	return lua.LString(strings.Clone(method))
}

// requestHeader is the request's header: as it stands in on_request, as it came afterwards.
func (f *frame) requestHeader() *core.Header {
	if came := f.asItCame(); came != nil {
		return &came.Header
	}
	return &f.x.Request.Header
}

func (f *frame) requestMethod() string {
	if came := f.asItCame(); came != nil {
		return came.Method
	}
	return f.x.Request.Method
}

func (f *frame) requestHost() []byte {
	if came := f.asItCame(); came != nil {
		return came.Host
	}
	return f.x.Request.Host
}

// asItCame is nil in on_request, and where no filter has changed anything.
func (f *frame) asItCame() *core.Arrived {
	if f.phase == phaseRequest {
		return nil
	}
	return f.x.Request.AsItCame()
}

// writable raises unless the request still goes upstream as scripts make it.
func (f *frame) writable(L *lua.LState, what string) {
	if f.phase != phaseRequest {
		raise(L, what+" can be changed in on_request only: the request has gone")
	}
}

func setMethod(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "req.method")
	method := wanted(L, "req.method", v)
	if !core.IsToken(core.Bytes(method)) || method == "CONNECT" {
		raise(L, "req.method cannot be "+describe(lua.LString(visible(method))))
	}
	f.x.Request.Keep()
	f.x.Request.Method = method
}

func getPath(f *frame) lua.LValue {
	if r := &f.x.Request; r.TargetPath != nil && f.phase == phaseRequest {
		return str(r.TargetPath)
	}
	return str(f.x.Request.Path)
}

func setPath(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "req.path")
	path := wanted(L, "req.path", v)
	switch {
	case !strings.HasPrefix(path, "/"):
		raise(L, "req.path begins with a slash")
	case strings.ContainsAny(path, "?#"):
		raise(L, "req.path has no '?' or '#' in it: parameters are set by req.query[name] or req.raw_query")
	case strings.ContainsAny(path, "\r\n\x00"):
		raise(L, "req.path has a line break (CR or LF) or NUL in it")
	case hasDots(path) && (f.x.Route == nil || f.x.Route.Path != core.PathRaw):
		raise(L, "req.path has a segment . or .. in it")
	}
	f.x.Request.TargetPath = appendEscaped(nil, path, &pathByte)
}

// hasDots tells whether a path has a dot segment, plain or encoded.
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		segment = strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".")
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

func setHost(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "req.host")
	host := wanted(L, "req.host", v)
	for i := range len(host) {
		if pathByte[host[i]] == 0 && host[i] != '[' && host[i] != ']' || host[i] == '/' || host[i] == '@' {
			raise(L, "req.host is a name or address with a port: "+describe(lua.LString(visible(host)))+" is none")
		}
	}
	if host == "" {
		raise(L, "req.host cannot be empty")
	}
	f.x.Request.Keep()
	f.x.Request.Host = core.Bytes(host)
}

// getBearer takes the token out of the Authorization header.
func getBearer(f *frame) lua.LValue {
	token, err := auth.Bearer(f.requestHeader())
	switch {
	case err == nil:
		return str(token)
	case errors.Is(err, auth.ErrMissing):
		return lua.LNil
	}
	return lua.LString("")
}
