package luaapi

import (
	"strings"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// What verifiers tell, as scripts see it: who calls, or why nobody is let in.

var identityFields = []vm.Param{
	p("user", "string?", "the caller's name; nil for who has none"),
	p("kind", "string", "of proof: jwt, api_key, basic, hmac, introspection, forward, certificate, ldap, network or anonymous"),
	p("verifier", "string?", "its name in a policy"),
	p("claims", "table<string, any>", "what the proof says beyond the name"),
	p("others", "gw.Identity[]?", "what the other verifiers of a policy told"),
}

// view is what is kept beside an identity: how scripts see it, and what was told of it last.
type view struct {
	table *lua.LTable
	told  atomic.Pointer[told]
}

// told is what gw.auth.tell worked out of an identity and a table of headers, both read-only.
type told struct {
	headers *lua.LTable
	lines   []toldLine
}

type toldLine struct {
	name, value string
	absent      bool // the claim is not there
}

// identityTable is an identity as scripts see it; it is made once.
func identityTable(who *auth.Identity) *lua.LTable {
	if v, ok := who.Attachment().(*view); ok {
		return v.table
	}
	t := newTable()
	t.RawSetString("user", optional(who.User))
	t.RawSetString("kind", lua.LString(who.Kind))
	t.RawSetString("verifier", optional(who.Verifier))
	t.RawSetString("claims", vm.Freeze("claims", claimTable(who.Claims)))
	if len(who.Others) > 0 {
		others := newTable()
		for _, other := range who.Others {
			others.Append(identityTable(other))
		}
		t.RawSetString("others", vm.Freeze("others", others))
	}
	return who.Attach(&view{table: vm.Freeze("the identity", t)}).(*view).table
}

var refusalFields = []vm.Param{
	p("status", "integer", "401, 403, 503, or what another service answered"),
	p("message", "string", "fit for the client"),
	p("reason", "string", "what was wrong, for the log"),
	p("challenges", "string[]", "values of WWW-Authenticate"),
}

var refusalMeta = metatable("__index", goFunction(func(L *lua.LState) int {
	r := L.Get(1).(*lua.LUserData).Value.(*auth.Refusal)
	switch key, _ := L.Get(2).(lua.LString); key {
	case "status":
		L.Push(number(float64(r.Status())))
	case "message":
		L.Push(lua.LString(r.Error()))
	case "reason":
		L.Push(lua.LString(r.Reason()))
	case "challenges":
		t := newTable()
		t.Metatable = jsonArray
		for _, c := range r.Challenges() {
			t.Append(lua.LString(c))
		}
		L.Push(t)
	default:
		raise(L, "a refusal has no "+describe(L.Get(2))+": it has status, message, reason, challenges")
	}
	return 1
}), "__newindex", goFunction(func(L *lua.LState) int {
	raise(L, "a refusal cannot be changed")
	return 0
}))

func authRefuse(a vm.Args) int {
	ud, _ := a.Get(1).(*lua.LUserData)
	var refusal *auth.Refusal
	if ud != nil {
		refusal, _ = ud.Value.(*auth.Refusal)
	}
	if refusal == nil {
		a.Bad(1, "the refusal of verifier:verify expected")
	}
	r := core.ErrorReply(core.FromFilter, refusal.Status(), refusal.Error())
	for _, c := range refusal.Challenges() {
		r.Header.Add("WWW-Authenticate", c)
	}
	if answer := refusal.Answer(); answer != nil {
		r = &core.Reply{Status: answer.Status, Body: answer.Body, Source: core.FromFilter}
		r.Header.CopyFrom(&answer.Header)
		if !core.BodyAllowed(answer.Status) {
			r.Body = nil
		}
	}
	current(a.L).reply = r
	a.L.Push(replyMark)
	return 1
}

func authClaim(a vm.Args) int {
	a.L.Push(claim(a, a.Readable(1), argText(a, 2)))
	return 1
}

// claim finds what an identity, or a table of claims, says.
func claim(a vm.Args, t *lua.LTable, path string) lua.LValue {
	if claims, ok := t.RawGetString("claims").(*lua.LTable); ok && t.RawGetString("kind") != lua.LNil {
		t = vm.Thaw(claims)
	}
	v := findMember(a, t, path, 0)
	if l, ok := v.(*lua.LTable); ok {
		if items := stringsOf(l); len(items) > 0 && len(items) == vm.Thaw(l).MaxN() {
			v = lua.LString(strings.Join(items, ","))
		}
	}
	return v
}

func authTell(a vm.Args) int {
	f := requestArg(a, 1)
	f.writable(a.L, "req.headers")
	lines := f.tellings(a, a.Table(2), a.Table(3))
	a.VM.Charge(8 * len(lines))
	f.x.Request.Keep()
	h := f.requestHeader()
	for i := range lines {
		line := &lines[i]
		f.guard(a.L, line.name, false, line.absent)
		if line.absent {
			h.Del(line.name)
		} else {
			h.Set(line.name, line.value)
		}
	}
	return 0
}

// tellings is what headers say of who. It is kept for the next request with the same proof.
func (f *frame) tellings(a vm.Args, who, headers *lua.LTable) []toldLine {
	var kept *atomic.Pointer[told]
	if f.who != nil && vm.IsFrozen(headers) {
		if v, ok := f.who.Attachment().(*view); ok && v.table == who {
			kept = &v.told
		}
	}
	if kept != nil {
		if t := kept.Load(); t != nil && t.headers == headers {
			return t.lines
		}
	}
	t := &told{headers: headers}
	who = a.VM.Readable(who)
	headers = a.VM.Readable(headers)
	for key, path := headers.Next(lua.LNil); key != lua.LNil; key, path = headers.Next(key) {
		name := headerName(a.L, key)
		checkName(a.L, name)
		wanted, ok := path.(lua.LString)
		if !ok {
			a.Bad(3, "%s", "header "+name+" is told the name of a claim, not a "+path.Type().String())
		}
		line := toldLine{name: name}
		if v := claim(a, who, string(wanted)); v == lua.LNil {
			line.absent = true
		} else {
			line.value = headerText(a.L, name, v)
		}
		t.lines = append(t.lines, line)
	}
	if kept != nil {
		kept.Store(t)
	}
	return t.lines
}

// findMember walks tables as auth.Value.Find walks claims.
func findMember(a vm.Args, t *lua.LTable, path string, depth int) lua.LValue {
	a.VM.Charge(4)
	if v := t.RawGetString(path); v != lua.LNil || depth > maxJSONDepth {
		return v
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if inner, ok := t.RawGetString(path[:i]).(*lua.LTable); ok {
			if v := findMember(a, vm.Thaw(inner), path[i+1:], depth+1); v != lua.LNil {
				return v
			}
		}
	}
	return lua.LNil
}
