package luaapi

import (
	"bytes"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.cookie: values of Set-Cookie (RFC 6265bis section 4.1).

var cookieFuncs = []vm.Func{
	{Name: "gw.cookie.format",
		Doc: "Writes a value for Set-Cookie. Unless options say otherwise it is `Path=/; HttpOnly; SameSite=Lax`; `secure = true` adds Secure. " +
			"A name or value that no cookie may have raises.",
		Params: list(p("name", "string", ""), p("value", "string", ""),
			opt("options", "table", "path, domain, max_age (seconds), expires (text), secure, http_only, same_site (`Strict`, `Lax`, `None`)")),
		Returns: list(p("line", "string", "")),
		Do:      formatCookie},
}

func formatCookie(a vm.Args) int {
	name, value := argText(a, 1), argText(a, 2)
	checkCookie(a.L, "a cookie's name", name, !core.IsToken(core.Bytes(name)))
	checkCookie(a.L, "the value of cookie "+name, value, !core.IsValue(core.Bytes(value)) || strings.ContainsAny(value, " ,\""))
	o := newTable()
	if a.Has(3) {
		o = a.Readable(3)
	}
	line := append(append(append([]byte(nil), name...), '='), value...)
	attribute := func(option, attribute, otherwise string) {
		text := otherwise
		if v := o.RawGetString(option); v != lua.LNil {
			text = wanted(a.L, "the option "+option, v)
			checkCookie(a.L, "the option "+option, text, !core.IsValue(core.Bytes(text)))
		}
		if text != "" {
			line = append(append(line, "; "+attribute+"="...), text...)
		}
	}
	attribute("path", "Path", "/")
	attribute("domain", "Domain", "")
	attribute("expires", "Expires", "")
	if v, ok := o.RawGetString("max_age").(lua.LNumber); ok {
		line = strconv.AppendInt(append(line, "; Max-Age="...), int64(v), 10)
	}
	if lua.LVAsBool(o.RawGetString("secure")) {
		line = append(line, "; Secure"...)
	}
	if o.RawGetString("http_only") != lua.LFalse {
		line = append(line, "; HttpOnly"...)
	}
	attribute("same_site", "SameSite", "Lax")
	if bytes.HasSuffix(line, []byte("SameSite=None")) && !lua.LVAsBool(o.RawGetString("secure")) {
		a.Bad(3, "browsers drop a cookie with SameSite=None and without secure = true")
	}
	for key, _ := o.Next(lua.LNil); key != lua.LNil; key, _ = o.Next(key) {
		option, _ := key.(lua.LString)
		if !isOneOf(core.Bytes(string(option)), "path", "domain", "max_age", "expires", "secure", "http_only", "same_site") {
			a.Bad(3, "there is no option %s", describe(key))
		}
	}
	a.L.Push(str(line))
	return 1
}
