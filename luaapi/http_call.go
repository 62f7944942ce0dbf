package luaapi

import (
	"cmp"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/luaapi/vm"
)

// callReader reads the table of a call. What is wrong raises: a call that a script cannot mean is misuse.
type callReader struct {
	a      vm.Args
	what   string // names the table in messages
	call   *core.Call
	bodies int // of body, json, form
	url    bool
}

func readCall(a vm.Args, what string, t *lua.LTable) *core.Call {
	return readMethod(a, "", what, t, "")
}

// readMethod reads a call whose method, unless "", and URL, unless "", are given beside the table.
func readMethod(a vm.Args, method, what string, t *lua.LTable, url string) *core.Call {
	limits := &worldOf(a.VM).limitsHTTP
	r := callReader{a: a, what: what, call: &core.Call{Method: method, Timeout: limits.Timeout, MaxAnswer: min(limits.MaxAnswer, int64(stringLimit(a)))}}
	if url != "" {
		r.setURL(lua.LString(url))
	}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, _ := key.(lua.LString)
		set := callFields[string(name)]
		if set == nil {
			r.wrong("has no %s: it has url or upstream, path, key, method, query, headers, body, json, form, timeout", describe(key))
		}
		if method != "" && name == "method" {
			r.wrong("has a method, which %s says already: use gw.http.request", a.Func.Name)
		}
		set(&r, v)
	}
	if q, ok := t.RawGetString("query").(*lua.LTable); ok {
		r.addQuery(vm.Thaw(q))
	}
	r.complete()
	return r.call
}

// callFields are what a call may say. The query is read when the path is known.
var callFields = map[string]func(r *callReader, v lua.LValue){
	"url": (*callReader).setURL,
	"upstream": func(r *callReader, v lua.LValue) {
		name := r.text("upstream", v)
		if services(r.a).Upstream(name) == nil {
			r.wrong("names no upstream: there is no %s", describe(lua.LString(visible(name))))
		}
		r.call.Upstream = name
	},
	"path":    (*callReader).setPath,
	"key":     func(r *callReader, v lua.LValue) { r.call.Key = r.text("key", v) },
	"method":  (*callReader).setMethod,
	"headers": (*callReader).setHeaders,
	"timeout": (*callReader).setTimeout,
	"query": func(r *callReader, v lua.LValue) {
		if _, ok := v.(*lua.LTable); !ok {
			r.wrong("has a query that is a %s: it is a table; a query as text stands behind the path", v.Type())
		}
	},
	"body": func(r *callReader, v lua.LValue) { r.setBody([]byte(r.text("body", v)), "") },
	"json": func(r *callReader, v lua.LValue) {
		body, err := encodeJSON(nil, v, stringLimit(r.a))
		if err != nil {
			r.wrong("has json that is none: %s", err)
		}
		r.setBody(body, "application/json")
	},
	"form": func(r *callReader, v lua.LValue) {
		t, ok := v.(*lua.LTable)
		if !ok {
			r.wrong("has a form that is a %s: it is a table", v.Type())
		}
		r.setBody(appendForm(r.a, nil, vm.Thaw(t)), "application/x-www-form-urlencoded")
	},
}

func (r *callReader) wrong(format string, args ...any) {
	r.a.Raise("a call of "+r.a.Func.Name+" ("+strings.ReplaceAll(r.what, "%", "%%")+") "+format, args...)
}

func (r *callReader) text(field string, v lua.LValue) string {
	s, ok := text(v)
	if !ok {
		r.wrong("has a %s that is a %s: it is a string", field, v.Type())
	}
	return s
}

// setURL takes a URL apart. Bytes that may not stand in path or query are encoded, but for line breaks and the like, which raise.
func (r *callReader) setURL(v lua.LValue) {
	if r.url {
		r.wrong("has two URLs")
	}
	if r.call.Path != nil {
		r.wrong("has a url and a path: a path goes with an upstream")
	}
	text := r.text("url", v)
	r.url = true
	checkValue(r.a.L, "the url of "+r.a.Func.Name, text)
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		r.wrong("has a url that is none: write http://host/path or https://host/path, not %s", describe(lua.LString(text)))
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if !isHost(authority) {
		r.wrong("has a url whose host is none: %s", describe(lua.LString(authority)))
	}
	r.call.Scheme, r.call.Authority = scheme, strings.ToLower(authority)
	r.setTarget(rest[end:])
}

// isHost tells whether a URL's authority is a host, and a port that can be connected to.
func isHost(authority string) bool {
	parsed, err := url.Parse("http://" + authority)
	if err != nil || !http1.IsAuthority(core.Bytes(authority)) || parsed.Hostname() == "" {
		return false
	}
	port, err := strconv.ParseUint(cmp.Or(parsed.Port(), "80"), 10, 16)
	return err == nil && port > 0
}

func (r *callReader) setPath(v lua.LValue) {
	path := r.text("path", v)
	checkValue(r.a.L, "the path of "+r.a.Func.Name, path)
	if !strings.HasPrefix(path, "/") {
		r.wrong("has a path that does not begin with a slash")
	}
	if r.call.Path != nil {
		r.wrong("has a url and a path: a path goes with an upstream")
	}
	r.setTarget(path)
}

func (r *callReader) setTarget(target string) {
	target, _, _ = strings.Cut(target, "#")
	path, query, has := strings.Cut(target, "?")
	if hasDots(path) {
		r.wrong("has a segment . or .. in its path: encode what you put into one with gw.url.encode")
	}
	if path == "" {
		path = "/"
	}
	r.call.Path = appendEscaped(make([]byte, 0, len(path)), path, &pathByte)
	if has {
		r.call.Query = appendEscaped(make([]byte, 0, len(query)+16), query, &queryByte)
	}
}

func (r *callReader) addQuery(t *lua.LTable) { r.call.Query = appendForm(r.a, r.call.Query, t) }

func (r *callReader) setMethod(v lua.LValue) {
	method := r.text("method", v)
	if !core.IsToken(core.Bytes(method)) || method == "CONNECT" {
		r.wrong("cannot have the method %s", describe(lua.LString(visible(method))))
	}
	r.call.Method = method
}

func (r *callReader) setBody(body []byte, kind string) {
	if r.bodies++; r.bodies > 1 {
		r.wrong("has more than one of body, json and form")
	}
	if r.call.Body = body; body == nil {
		r.call.Body = []byte{}
	}
	if kind != "" && r.call.Header.GetKind(core.KindContentType) == nil {
		r.call.Header.Add("Content-Type", kind)
	}
}

func (r *callReader) setHeaders(v lua.LValue) {
	t, ok := v.(*lua.LTable)
	if !ok {
		r.wrong("has headers that are a %s: they are a table", v.Type())
	}
	readHeaders(r.a, vm.Thaw(t), &r.call.Header, func(name string) {
		switch kind := core.KindOf(core.Bytes(name)); {
		case kind == core.KindContentType:
			r.call.Header.DelKind(kind) // instead of that of json or form
		case kind.Hop(), kind == core.KindHost, kind == core.KindContentLength, kind == core.KindExpect, kind == core.KindTraceID, kind == core.KindLoop:
			r.wrong("has a header %s, which the gateway writes itself", name)
		}
	})
}

// readHeaders copies a table of headers, in the order of the script. check looks at each name.
func readHeaders(a vm.Args, t *lua.LTable, h *core.Header, check func(name string)) {
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			a.Raise("headers have names, not %s", describe(key))
		}
		checkName(a.L, string(name))
		check(string(name))
		lines, ok := v.(*lua.LTable)
		if !ok {
			h.Add(string(name), headerText(a.L, string(name), v))
		} else {
			lines = vm.Thaw(lines)
			for i := 1; i <= min(lines.MaxN(), maxReplyLines+1); i++ {
				h.Add(string(name), headerText(a.L, string(name), lines.RawGetInt(i)))
			}
		}
		if h.Len() > maxReplyLines {
			a.Raise("more than %d header lines", maxReplyLines)
		}
	}
}

// setTimeout reads seconds, or a duration's text.
func (r *callReader) setTimeout(v lua.LValue) {
	d, err := durationOf(v)
	if err != "" || d <= 0 {
		r.wrong("has a timeout that is none: write seconds above 0, or a text such as \"500ms\", not %s", describe(v))
	}
	r.call.Timeout = d
}

// durationOf reads seconds, or a duration's text.
func durationOf(v lua.LValue) (time.Duration, string) {
	switch v := v.(type) {
	case lua.LNumber:
		if seconds := float64(v); seconds >= 0 && seconds <= maxSeconds {
			return time.Duration(math.Round(seconds * float64(time.Second))), ""
		}
	case lua.LString:
		if d, err := conf.ParseDuration(string(v)); err == nil && d <= maxSeconds*time.Second {
			return d, ""
		}
	}
	return 0, "no duration"
}

const maxSeconds = 24 * 60 * 60

// complete checks what belongs together and fills in what was left open.
func (r *callReader) complete() {
	c := r.call
	switch {
	case r.url && c.Upstream != "":
		r.wrong("has a url and an upstream: it has one of them")
	case !r.url && c.Upstream == "":
		r.wrong("leads nowhere: it has a url, or an upstream with a path")
	case r.url && c.Key != "":
		r.wrong("has a key, which goes with an upstream")
	}
	if c.Path == nil {
		c.Path = []byte("/")
	}
	if c.Method == "" {
		c.Method = "GET"
		if c.Body != nil {
			c.Method = "POST"
		}
	}
	switch c.Method {
	case "POST", "PUT", "PATCH":
		if c.Body == nil {
			c.Body = []byte{} // says so with a length
		}
	}
}
