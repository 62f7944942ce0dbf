package luaapi

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

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
	vm.Func{Name: "gw.auth.tell", Phases: phaseRequest,
		Doc: "Tells the upstream what a proof says: `headers` maps names of headers to claims, which are found as gw.auth.claim finds them. A header whose claim is not there is " +
			"removed. Where both are read-only, the identity of a verifier and a table of the filter's settings, what is to be said is worked out once.",
		Params: list(p("req", "gw.Request", ""), p("who", "gw.Identity", "the first result of verifier:verify, or the claims of gw.jwt.verify"),
			p("headers", "table<string, string>", "such as conf.headers")),
		Do: authTell},
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
	who, err := v.Verify(waiterOf(a), f.x)
	if err == nil {
		f.who = who
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
