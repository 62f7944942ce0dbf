package luaapi

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

var urlPartFields = []vm.Param{
	p("scheme", "string?", "in lower case"),
	p("user", "string?", "what stands before the `@`, as it stands"),
	p("host", "string?", "without the brackets of IPv6"),
	p("port", "integer?", "nil when the URL names none"),
	p("path", "string", "as it stands, percent-encoded"),
	p("query", "string?", "as it stands, without the question mark"),
	p("fragment", "string?", "as it stands, without the `#`"),
}

var urlPartFuncs = []vm.Func{
	{Name: "gw.url.parse",
		Doc: "Takes a URL apart (RFC 3986). Nothing is decoded, so that gw.url.build puts it together again. A port that is no number, a host that " +
			"cannot be one, control characters and spaces are refused.",
		Params:  list(p("url", "string", "absolute, or a path with a query")),
		Returns: list(p("parts", "gw.URL?", ""), errParam),
		Do: func(a vm.Args) int {
			s := argText(a, 1)
			a.CheckString(len(s))
			parts, err := parseURL(s)
			if err != nil {
				return pushFailure(a, err)
			}
			a.L.Push(parts)
			return 1
		}},
	{Name: "gw.url.build",
		Doc: "Puts a URL together of what gw.url.parse gives. The query may be a table, as in gw.url.query. What may not stand in a part raises or is " +
			"percent-encoded; what is encoded stays.",
		Params:  list(p("parts", "table", "scheme, user, host, port, path, query, fragment: what is nil is left out")),
		Returns: list(p("url", "string", "")),
		Do:      buildURL},
	{Name: "gw.url.parse_query",
		Doc: "Reads a query, or a form that was sent as application/x-www-form-urlencoded: split at `&` only, names and values decoded; a pair that cannot be " +
			"decoded is read as it stands.",
		Params: list(p("query", "string", "without a question mark")),
		Returns: list(p("first", "table<string, string>", "the first value of each name"),
			p("all", "table<string, string[]>", "all values of each name, in order")),
		Do: parseQuery},
}

func parseURL(s string) (lua.LValue, error) {
	if i := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
		return nil, errors.New("a control character or space at byte " + strconv.Itoa(i+1))
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New(visible(errors.Unwrap(err).Error()))
	}
	parts := newTable()
	set := func(name, text string) {
		if text != "" {
			parts.RawSetString(name, lua.LString(text))
		}
	}
	rest, fragment, _ := strings.Cut(s, "#")
	rest, query, asked := strings.Cut(rest, "?")
	set("scheme", u.Scheme)
	if u.Scheme != "" {
		rest = rest[len(u.Scheme)+1:]
	}
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		slash := strings.IndexByte(authority+"/", '/')
		authority, rest = authority[:slash], authority[slash:]
		if i := strings.LastIndexByte(authority, '@'); i >= 0 {
			set("user", authority[:i])
		}
		set("host", u.Hostname())
		if port := u.Port(); port != "" {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return nil, errors.New("the port is no number up to 65535")
			}
			parts.RawSetString("port", lua.LNumber(n))
		}
	}
	parts.RawSetString("path", lua.LString(rest))
	if asked {
		parts.RawSetString("query", lua.LString(query))
	}
	set("fragment", fragment)
	return parts, nil
}

func buildURL(a vm.Args) int {
	t := a.Readable(1)
	for key, _ := t.Next(lua.LNil); key != lua.LNil; key, _ = t.Next(key) {
		name, _ := key.(lua.LString)
		if !slices.ContainsFunc(urlPartFields, func(f vm.Param) bool { return f.Name == string(name) }) {
			a.Bad(1, "a URL has no %s: it has scheme, user, host, port, path, query, fragment", describe(key))
		}
	}
	part := func(name string) string {
		v := t.RawGetString(name)
		if v == lua.LNil {
			return ""
		}
		s, ok := text(v)
		if !ok {
			a.Bad(1, "%s is a string, not a %s", name, v.Type())
		}
		a.CheckString(3 * len(s))
		return s
	}
	out := authorityOf(a, part)
	path := part("path")
	switch host := part("host"); {
	case host != "" && path != "" && path[0] != '/':
		a.Bad(1, "after a host the path begins with a slash")
	case host == "" && strings.HasPrefix(path, "//"):
		a.Bad(1, "a path that begins with two slashes would read as a host")
	}
	out = appendEscaped(out, path, &pathByte)
	if query, ok := t.RawGetString("query").(*lua.LTable); ok {
		out = append(append(out, '?'), appendForm(a, nil, vm.Thaw(query))...)
	} else if t.RawGetString("query") != lua.LNil {
		out = appendEscaped(append(out, '?'), part("query"), &rawQueryByte)
	}
	if fragment := part("fragment"); fragment != "" {
		out = appendEscaped(append(out, '#'), fragment, &pathByte)
	}
	a.CheckString(len(out))
	a.L.Push(str(out))
	return 1
}

// authorityOf gives what stands before the path.
func authorityOf(a vm.Args, part func(name string) string) (out []byte) {
	if scheme := part("scheme"); scheme != "" {
		if !isScheme(scheme) {
			a.Bad(1, "%s is no scheme", describe(lua.LString(visible(scheme))))
		}
		out = append(append(out, scheme...), ':')
	}
	host, port, user := part("host"), part("port"), part("user")
	if host == "" {
		if port != "" || user != "" {
			a.Bad(1, "port and user stand beside a host")
		}
		return out
	}
	out = append(out, "//"...)
	if user != "" {
		out = append(appendEscaped(out, user, &userByte), '@')
	}
	if strings.ContainsAny(host, "/?#@[]\\<>^`{|} \"") || strings.Contains(host, ":") && !isAddress(host) || visible(host) != host {
		a.Bad(1, "%s is no host", describe(lua.LString(visible(host))))
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	out = append(out, host...)
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			a.Bad(1, "a port is a number up to 65535, not %s", describe(lua.LString(visible(port))))
		}
		out = strconv.AppendUint(append(out, ':'), n, 10)
	}
	return out
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

func parseQuery(a vm.Args) int {
	query := core.Bytes(argText(a, 1))
	a.CheckString(len(query))
	first, all := newTable(), newTable()
	for pair, rest := cutPair(query); pair != nil; pair, rest = cutPair(rest) {
		a.VM.Charge(16)
		encodedName, encodedValue, _ := strings.Cut(string(pair), "=")
		name, value := lua.LString(decoded([]byte(encodedName))), lua.LString(decoded([]byte(encodedValue)))
		values, _ := all.RawGet(name).(*lua.LTable)
		if values == nil {
			values = newTable()
			all.RawSet(name, values)
			first.RawSet(name, value)
		}
		appendItem(a, values, value)
	}
	a.L.Push(first)
	a.L.Push(all)
	return 2
}
