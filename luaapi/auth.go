package luaapi

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.auth: who calls. A verifier is made in init, of the filter's settings, and kept over reloads with all that it remembers.

var authFuncs = append(kindFuncs(),
	vm.Func{Name: "gw.auth.policy", Phases: phaseLoad | phaseInit,
		Doc: "Joins verifiers. `verifiers` maps names to settings, each with its `kind`, as the functions of gw.auth are called. `require` says how: `any` (default) lets in " +
			"with the first good proof, `all` wants all of them, `optional` lets in too who brings none, `none` asks nobody. `of` lists the names that count here, in the order " +
			"in which they are asked; all of them when it is absent, by name. `anonymous` is the user of who is let in without a proof.",
		Params:  list(p("conf", "table", "such as the filter's own conf; other fields are not looked at")),
		Returns: list(p("verifier", "gw.Verifier", "")),
		Do: func(a vm.Args) int {
			return pushVerifier(a, makePolicy(worldOf(a.VM), newFields(a.L, a.Readable(1), "")))
		}},
	vm.Func{Name: "gw.auth.refuse", Phases: phaseRequest,
		Doc: "Answers a request that a verifier has refused: 401 with a line of WWW-Authenticate for each scheme that would do, 403 for a good proof that is not enough, 503 when " +
			"nobody can tell, or what another service answered.",
		Params:  list(p("refusal", "gw.Refusal", "the second result of verifier:verify")),
		Returns: list(p("reply", "gw.Reply", "to be returned from on_request")),
		Do:      authRefuse},
	vm.Func{Name: "gw.auth.claim",
		Doc:     "Finds what a proof says by its name, or by a path of names joined by dots. Numbers keep their digits; a list of texts is joined by commas, fit for a header.",
		Params:  list(p("who", "gw.Identity", "the first result of verifier:verify, or the claims of gw.jwt.verify"), p("path", "string", "such as `org.id`")),
		Returns: list(p("value", "any", "nil when it is not there")),
		Do:      authClaim},
)

// kindFuncs makes a function of each kind of verifier.
func kindFuncs() []vm.Func {
	var all []vm.Func
	for i := range kinds {
		k := &kinds[i]
		all = append(all, vm.Func{Name: "gw.auth." + k.name, Phases: phaseLoad | phaseInit,
			Doc:     "Makes a verifier of " + lowerFirst(k.doc),
			Params:  list(p("conf", "table", "the settings, such as the filter's own conf; other fields are not looked at")),
			Returns: list(p("verifier", "gw.Verifier", "")),
			Do: func(a vm.Args) int {
				return pushVerifier(a, k.make(worldOf(a.VM), newFields(a.L, a.Readable(1), "")))
			}})
	}
	return all
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'A' && s[1] <= 'Z' {
		return s // an abbreviation
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// make gives the verifier of these settings: one that is there already, or a new one. What is impossible raises, with the setting's name.
func (k *kind) make(w *world, f *fields) auth.Verifier {
	build := k.read(w, f)
	kept, ok, err := w.verifiers.Get(f.id(k.name), func() (any, error) { return build() })
	switch {
	case err != nil:
		f.bad(f.culprit(err, k.main), "%s", err)
	case !ok:
		raise(f.L, "gw.auth."+k.name+" makes verifiers of settings: the same in every VM, and not of what changes")
	}
	return kept.(auth.Verifier)
}

// makePolicy makes verifiers by their names, and the policy that joins them.
func makePolicy(w *world, f *fields) auth.Verifier {
	o := auth.PolicyOptions{Require: auth.Require(f.text("require")), Anonymous: f.text("anonymous")}
	settings := map[string]lua.LValue{}
	var names []string
	f.each("verifiers", func(name string, v lua.LValue) {
		settings[name] = v
		names = append(names, name)
	})
	if f.has("of") && len(f.list("of")) > 0 {
		names = f.list("of")
	}
	if o.Require == auth.RequireNone {
		names = nil
	}
	for _, name := range names {
		if settings[name] == nil {
			f.bad("of", "there is no verifier %q", visible(name))
		}
		o.Verifiers = append(o.Verifiers, auth.Named{Name: name, Verifier: makeNamed(w, f, name, settings[name])})
	}
	v, err := auth.NewPolicy(o)
	if err != nil {
		f.bad(f.culprit(err, "require"), "%s", err)
	}
	return v
}

func makeNamed(w *world, f *fields, name string, v lua.LValue) auth.Verifier {
	in := f.inner("verifiers."+name, v)
	in.hash = newFields(f.L, in.t, "").hash
	wanted := in.text("kind")
	for i := range kinds {
		if kinds[i].name == wanted {
			made := kinds[i].make(w, in)
			in.complete()
			return made
		}
	}
	var known []string
	for i := range kinds {
		known = append(known, kinds[i].name)
	}
	in.bad("kind", "is one of %s", strings.Join(known, ", "))
	return nil
}

// verifierMethods are the functions of a verifier.
var verifierMethods = []vm.Func{
	{Name: "verifier:verify", Phases: phaseRequest,
		Doc: "Tells who sent the request: `user`, `kind`, `claims`, in a policy `verifier` and, where all must pass, `others`. Or nil and the refusal: `status`, `message` for " +
			"the client, `reason` for the log.",
		Params:  list(p("req", "gw.Request", "")),
		Returns: list(p("who", "gw.Identity?", "read-only"), p("refusal", "gw.Refusal?", "")),
		Do:      verify},
}

var verifierMeta = func() *lua.LTable {
	methods := newTable()
	for i := range verifierMethods {
		methods.RawSetString(strings.TrimPrefix(verifierMethods[i].Name, "verifier:"), verifierMethods[i].Function())
	}
	return metatable("__index", methods, "__newindex", goFunction(func(L *lua.LState) int {
		raise(L, "a verifier has no fields to set")
		return 0
	}))
}()

func pushVerifier(a vm.Args, v auth.Verifier) int {
	a.L.Push(&lua.LUserData{Value: v, Metatable: verifierMeta})
	return 1
}

func verify(a vm.Args) int {
	ud, _ := a.Get(1).(*lua.LUserData)
	var v auth.Verifier
	if ud != nil {
		v, _ = ud.Value.(auth.Verifier)
	}
	if v == nil {
		a.Raise("call it with a colon: verifier:verify(req)")
	}
	f := requestArg(a, 2)
	who, err := v.Verify(waiterOf(a.VM, f.x), f.x)
	if err == nil {
		a.L.Push(identityTable(who))
		return 1
	}
	refusal, ok := errors.AsType[*auth.Refusal](err)
	if !ok {
		f.unreadable(a.L, err)
	}
	a.L.Push(lua.LNil)
	a.L.Push(&lua.LUserData{Value: refusal, Metatable: refusalMeta})
	return 2
}

// requestArg is the frame of argument i, which is req.
func requestArg(a vm.Args, i int) *frame {
	if ud, ok := a.L.Get(i).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*requestHandle); ok {
			return (*frame)(h).alive(a.L)
		}
	}
	a.Bad(i, "req expected")
	return nil
}

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
