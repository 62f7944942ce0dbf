package luaapi

import (
	"errors"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.jwt: bearer tokens. A verifier is made once for the same settings and remembers the tokens that it has verified, each with its
// claims as one read-only table.

var jwtConf = p("conf", "table", "as for gw.auth.jwt, and `realm`; durations are seconds or texts such as `5s`. Other fields are not looked at")

var jwtFuncs = append([]vm.Func{
	{Name: "gw.jwt.verify",
		Doc: "Checks a JSON Web Token: signature under the one algorithm that the key's settings name, times, issuer, audience, conditions. Claims that are " +
			"null read as nil. The second result is fit for the client: `missing bearer token`, `token expired`, `token invalid`, `not allowed` or `temporarily unavailable`; " +
			"the third for the log; the fourth is the status it means: 401, 403 or 503; the fifth what WWW-Authenticate should say.",
		Params: list(p("token", "string?", "such as req.bearer"), jwtConf),
		Returns: list(p("claims", "table<string, any>?", "read-only"), errParam, p("reason", "string?", "what was wrong"), p("status", "integer?", ""),
			p("challenge", "string?", "")),
		Do: jwtVerify},
	{Name: "gw.jwt.check", Phases: phaseLoad | phaseInit,
		Doc: "Raises when no verifier can be made of the settings (a secret that is too short, a broken key): call it in init, so that they are refused at load. Key sets " +
			"that are fetched need it, since fetching begins when the settings go live.",
		Params: list(jwtConf),
		Do: func(a vm.Args) int {
			tokensOf(worldOf(a.VM), newFields(a.L, a.Readable(1), ""))
			return 0
		}},
}, jwtSignFuncs...)

func jwtVerify(a vm.Args) int {
	verifier := tokensArg(a)
	if !a.Has(1) {
		return refused(a, auth.ErrMissing)
	}
	text := argText(a, 1)
	if text == "" {
		return refused(a, auth.ErrInvalid)
	}
	token, err := verifier.VerifyWait(waiterOf(a), text)
	if err != nil {
		return refused(a, err)
	}
	claims, _ := token.Attachment().(*lua.LTable)
	if claims == nil {
		claims = token.Attach(vm.Freeze("claims", claimTable(token.Claims))).(*lua.LTable)
	}
	a.L.Push(claims)
	return 1
}

func refused(a vm.Args, err error) int {
	realm, _ := a.Readable(2).RawGetString("realm").(lua.LString)
	refusal := auth.Challenge(err, string(realm))
	a.L.Push(lua.LNil)
	a.L.Push(lua.LString(refusal.Error()))
	a.L.Push(lua.LString(refusal.Reason()))
	a.L.Push(number(float64(refusal.Status())))
	a.L.Push(optional(strings.Join(refusal.Challenges(), ", ")))
	return 5
}

// tokens is a verifier of tokens as settings keep one.
type tokens struct{ auth.TokenVerifier }

// tokensArg finds the verifier for argument 2. That of the filter's own conf is kept with its settings.
func tokensArg(a vm.Args) auth.TokenVerifier {
	t := a.Table(2)
	f, _ := a.VM.Slot.(*frame)
	own := f != nil && f.conf == t
	if own {
		if v := f.turn.settings.tokens.Load(); v != nil {
			return v.TokenVerifier
		}
	}
	v := tokensOf(worldOf(a.VM), newFields(a.L, a.VM.Readable(t), ""))
	if own {
		f.turn.settings.tokens.Store(&tokens{v})
	}
	return v
}

// tokensOf gives the verifier of these settings: one that is there already, or a new one. What is impossible raises, with the setting's name.
func tokensOf(w *world, f *fields) auth.TokenVerifier {
	build := readTokens(w, f)
	id := f.id("tokens")
	if !fetches(f) {
		v, err := w.shared.verifiers.get(id, build)
		if err != nil {
			f.bad(f.culprit(err, jwtMain(f)), "%s", err)
		}
		return v
	}
	kept, ok, err := w.verifiers.Get(id, func() (any, error) { return build() })
	switch {
	case err != nil:
		f.bad(f.culprit(err, jwtMain(f)), "%s", err)
	case !ok:
		raise(f.L, "keys are fetched for settings that init has seen: call gw.jwt.check(conf) there")
	}
	return kept.(auth.TokenVerifier)
}

// fetches tells whether the keys of such settings are fetched.
func fetches(f *fields) bool { return f.has("jwks_url") || f.has("discovery") || f.has("issuers") }

// jwtMain is the setting that an impossible key is blamed on.
func jwtMain(f *fields) string {
	for _, name := range []string{"public_key", "jwks", "jwks_url", "discovery", "issuers"} {
		if f.has(name) {
			return name
		}
	}
	return "secret"
}

// claimTable turns claims into a table. Members that are null are left out; in a list null keeps its place.
func claimTable(v auth.Value) *lua.LTable {
	t := newTable()
	if v.Kind() == auth.List {
		t.Metatable = jsonArray
	}
	for i := range min(v.Len(), maxItems) {
		name, item := v.At(i)
		switch {
		case v.Kind() == auth.List:
			t.Append(claimValue(item))
		case item.Kind() != auth.Null:
			t.RawSetString(strings.Clone(name), claimValue(item))
		}
	}
	return t
}

func claimValue(v auth.Value) lua.LValue {
	switch v.Kind() {
	case auth.Bool:
		return lua.LBool(v.Bool())
	case auth.Number:
		return luaNumber(v.Text())
	case auth.String:
		return lua.LString(v.Text())
	case auth.List, auth.Map:
		return claimTable(v)
	}
	return jsonNull
}

// verifiers keeps verifiers over reloads, so that what they remember stays: as many as a configuration may reasonably have.
type verifiers struct {
	mu    sync.Mutex
	known map[auth.ID]auth.TokenVerifier
}

const maxVerifiers = 256

func (c *verifiers) get(id auth.ID, build func() (auth.TokenVerifier, error)) (auth.TokenVerifier, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.known[id]; v != nil {
		return v, nil
	}
	v, err := build()
	if err != nil {
		return nil, err
	}
	if c.known == nil || len(c.known) >= maxVerifiers {
		c.known = map[auth.ID]auth.TokenVerifier{}
	}
	c.known[id] = v
	return v, nil
}

// settingError is raised by natives that refuse a setting, so that building a pipeline can say where it stands.
type settingError struct{ name, text string }

var settingErrorMeta = metatable("__tostring", goFunction(func(L *lua.LState) int {
	e := L.Get(1).(*lua.LUserData).Value.(*settingError)
	L.Push(lua.LString(e.name + ": " + e.text))
	return 1
}))

func raiseSetting(L *lua.LState, name string, err error) {
	L.Error(&lua.LUserData{Value: &settingError{name, err.Error()}, Metatable: settingErrorMeta}, 0)
}

// settingOf finds the setting that a raised error names.
func settingOf(err error) *settingError {
	var raised *vm.Error
	if errors.As(err, &raised) {
		if ud, ok := raised.Value.(*lua.LUserData); ok {
			e, _ := ud.Value.(*settingError)
			return e
		}
	}
	return nil
}
