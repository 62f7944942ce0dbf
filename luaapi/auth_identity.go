package luaapi

import (
	"strings"

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

// identityTable is an identity as scripts see it; it is made once.
func identityTable(who *auth.Identity) *lua.LTable {
	if t, ok := who.Attachment().(*lua.LTable); ok {
		return t
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
	return who.Attach(vm.Freeze("the identity", t)).(*lua.LTable)
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
	t := a.Readable(1)
	path := argText(a, 2)
	if claims, ok := t.RawGetString("claims").(*lua.LTable); ok && t.RawGetString("kind") != lua.LNil {
		t = vm.Thaw(claims)
	}
	v := findMember(a, t, path, 0)
	if l, ok := v.(*lua.LTable); ok {
		if items := stringsOf(l); len(items) > 0 && len(items) == vm.Thaw(l).MaxN() {
			v = lua.LString(strings.Join(items, ","))
		}
	}
	a.L.Push(v)
	return 1
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
