package luaapi

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.cookie: values of Set-Cookie (RFC 6265bis section 4.1) and of Cookie (section 4.2).

var cookieFuncs = []vm.Func{
	{Name: "gw.cookie.format",
		Doc: "Writes a value for Set-Cookie. Unless options say otherwise it is `Path=/; HttpOnly; SameSite=Lax`; `secure = true` adds Secure, and " +
			"`false` leaves an attribute out. A name or value that no cookie may have raises: encode it, with gw.url.encode or gw.crypto.base64url_encode.",
		Params: list(p("name", "string", ""), p("value", "string", ""),
			opt("options", "table", "path, domain, max_age (seconds), expires (text), secure, http_only, same_site (`Strict`, `Lax`, `None`), partitioned, other (text)")),
		Returns: list(p("line", "string", "")),
		Do:      formatCookie},
	{Name: "gw.cookie.parse",
		Doc:     "Reads the value of a Cookie header, as req.cookies does.",
		Params:  list(p("line", "string", "")),
		Returns: list(p("cookies", "table<string, string>", "the first value of each name")),
		Do: func(a vm.Args) int {
			line := argText(a, 1)
			a.CheckString(len(line))
			cookies := newTable()
			eachPair(core.Bytes(line), func(name, value []byte) bool {
				a.VM.Charge(8)
				if key := lua.LString(name); cookies.RawGet(key) == lua.LNil {
					cookies.RawSet(key, str(value))
				}
				return true
			})
			a.L.Push(cookies)
			return 1
		}},
	{Name: "gw.cookie.parse_set",
		Doc: "Reads a value of Set-Cookie. gw.cookie.format with what it gives writes the same cookie again: change the options between, to mend what an " +
			"upstream sets.",
		Params: list(p("line", "string", "such as one of res.headers:all(\"Set-Cookie\")")),
		Returns: list(p("name", "string?", ""), p("value", "string", "or why it is none"),
			p("options", "table", "as gw.cookie.format wants them; what the line does not say is false")),
		Do: parseSetCookie},
}

// cookieOptions are the options of gw.cookie.format with their attributes, in the order in which they are written.
var cookieOptions = []struct{ name, attribute, otherwise string }{
	{"path", "Path", "/"}, {"domain", "Domain", ""}, {"expires", "Expires", ""}, {"max_age", "Max-Age", ""}, {"secure", "Secure", ""},
	{"http_only", "HttpOnly", "yes"}, {"same_site", "SameSite", "Lax"}, {"partitioned", "Partitioned", ""},
}

// isFlag tells whether an attribute has no value.
func isFlag(option string) bool {
	return option == "secure" || option == "http_only" || option == "partitioned"
}

func formatCookie(a vm.Args) int {
	name, value := argText(a, 1), argText(a, 2)
	checkCookie(a.L, "a cookie's name", name, !core.IsToken(core.Bytes(name)))
	checkCookie(a.L, "the value of cookie "+name, value, !isCookieValue(value))
	options := newTable()
	if a.Has(3) {
		options = a.Readable(3)
	}
	checkOptions(a, options)
	line := append(append(append([]byte(nil), name...), '='), value...)
	for _, o := range cookieOptions {
		line = appendAttribute(a, line, o.name, o.attribute, o.otherwise, options.RawGetString(o.name))
	}
	if v := options.RawGetString("other"); lua.LVAsBool(v) {
		line = append(append(line, "; "...), attributeText(a, "other", v)...)
	}
	if bytes.Contains(line, []byte("; SameSite=None")) && !lua.LVAsBool(options.RawGetString("secure")) {
		a.Bad(3, "browsers drop a cookie with SameSite=None and without secure = true")
	}
	a.CheckString(len(line))
	a.L.Push(str(line))
	return 1
}

func checkOptions(a vm.Args, options *lua.LTable) {
	names := []string{"other"}
	for _, o := range cookieOptions {
		names = append(names, o.name)
	}
	for key, _ := options.Next(lua.LNil); key != lua.LNil; key, _ = options.Next(key) {
		if name, _ := key.(lua.LString); !slices.Contains(names, string(name)) {
			a.Bad(3, "there is no option %s: there are %s", describe(key), strings.Join(names, ", "))
		}
	}
}

func appendAttribute(a vm.Args, line []byte, option, attribute, otherwise string, v lua.LValue) []byte {
	switch {
	case v == lua.LFalse || v == lua.LNil && otherwise == "":
		return line
	case isFlag(option):
		if v != lua.LTrue && v != lua.LNil {
			a.Bad(3, "%s is true or false, not a %s", option, v.Type())
		}
		return append(append(line, "; "...), attribute...)
	case v == lua.LNil:
		v = lua.LString(otherwise)
	case option == "max_age":
		n, ok := v.(lua.LNumber)
		if !ok || n != lua.LNumber(int64(n)) {
			a.Bad(3, "max_age is a whole number of seconds, not %s", describe(v))
		}
		return strconv.AppendInt(append(line, "; Max-Age="...), int64(n), 10)
	}
	text := attributeText(a, option, v)
	if option == "same_site" && !slices.Contains([]string{"Strict", "Lax", "None"}, text) {
		a.Bad(3, "same_site is Strict, Lax or None, not %s", describe(lua.LString(visible(text))))
	}
	return append(append(append(append(line, "; "...), attribute...), '='), text...)
}

func attributeText(a vm.Args, option string, v lua.LValue) string {
	text := wanted(a.L, "the option "+option, v)
	if option == "other" {
		checkValue(a.L, "the option other", text)
	} else {
		checkCookie(a.L, "the option "+option, text, !core.IsValue(core.Bytes(text)))
	}
	return text
}

// isCookieValue tells whether a value has cookie-octets alone, within quotes or without (RFC 6265 section 4.1.1).
func isCookieValue(s string) bool {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == ',' || c == ';' || c == '\\' {
			return false
		}
	}
	return true
}

func parseSetCookie(a vm.Args) int {
	line := argText(a, 1)
	a.CheckString(len(line))
	pair, rest, _ := strings.Cut(line, ";")
	name, value, ok := strings.Cut(pair, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" {
		return a.Fail("no cookie: it begins with name=value")
	}
	options, others := newTable(), []string(nil)
	for _, o := range cookieOptions {
		options.RawSetString(o.name, lua.LFalse)
	}
	for part := range strings.SplitSeq(rest, ";") {
		a.VM.Charge(8)
		part = strings.TrimSpace(part)
		attribute, text, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(cookieOptions, func(o struct{ name, attribute, otherwise string }) bool {
			return strings.EqualFold(o.attribute, strings.TrimSpace(attribute))
		})
		if i < 0 {
			if part != "" {
				others = append(others, part)
			}
			continue
		}
		options.RawSetString(cookieOptions[i].name, optionValue(cookieOptions[i].name, strings.TrimSpace(text)))
	}
	if others != nil {
		options.RawSetString("other", lua.LString(strings.Join(others, "; ")))
	}
	a.L.Push(lua.LString(name))
	a.L.Push(lua.LString(value))
	a.L.Push(options)
	return 3
}

// optionValue is an attribute as gw.cookie.format wants it. A Max-Age that is no number, and a SameSite that is none of the three, are
// as good as absent (RFC 6265bis section 5.4).
func optionValue(option, text string) lua.LValue {
	switch {
	case isFlag(option):
		return lua.LTrue
	case option == "max_age":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > -1<<53 && n < 1<<53 {
			return lua.LNumber(n)
		}
		return lua.LFalse
	case option == "same_site":
		for _, known := range []string{"Strict", "Lax", "None"} {
			if strings.EqualFold(known, text) {
				return lua.LString(known)
			}
		}
		return lua.LFalse
	case text == "":
		return lua.LFalse
	}
	return lua.LString(text)
}
