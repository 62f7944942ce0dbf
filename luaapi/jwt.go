package luaapi

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.jwt: bearer tokens. A verifier is made once for the same settings and remembers the tokens that it has verified, each with its
// claims as one read-only table.

var jwtConf = p("conf", "table", "secret, or public_key (PEM); algorithm, issuer, audience, required, leeway (seconds). Other fields are not looked at")

var jwtFuncs = []vm.Func{
	{Name: "gw.jwt.verify",
		Doc: "Checks a JSON Web Token: signature under the one algorithm that the key's settings name, times, issuer, audience. Claims that are " +
			"null read as nil. The second result is fit for the client: `missing bearer token`, `token expired` or `token invalid`; the third for the log.",
		Params:  list(p("token", "string?", "such as req.bearer"), jwtConf),
		Returns: list(p("claims", "table<string, any>?", "read-only"), errParam, p("reason", "string?", "what was wrong")),
		Do:      jwtVerify},
	{Name: "gw.jwt.check", Phases: phaseLoad | phaseInit,
		Doc:    "Raises when no verifier can be made of the settings (a secret that is too short, a broken key): call it in init, so that they are refused at load.",
		Params: list(jwtConf),
		Do: func(a vm.Args) int {
			if _, err := worldOf(a.VM).shared.verifiers.get(jwtOptions(a, a.Readable(1))); err != nil {
				raiseSetting(a.L, jwtCulprit(a.Readable(1), err), err)
			}
			return 0
		}},
}

func jwtVerify(a vm.Args) int {
	verifier := verifierArg(a)
	if !a.Has(1) {
		return refused(a, auth.ErrMissing)
	}
	text := argText(a, 1)
	if text == "" {
		return refused(a, auth.ErrInvalid)
	}
	token, err := verifier.Verify(text)
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
	a.L.Push(lua.LNil)
	a.L.Push(lua.LString(err.Error()))
	a.L.Push(lua.LString(auth.Reason(err)))
	return 3
}

// verifierArg finds the verifier for argument 2. That of the filter's own conf is kept with its settings.
func verifierArg(a vm.Args) *auth.JWT {
	t := a.Table(2)
	f, _ := a.VM.Slot.(*frame)
	own := f != nil && f.conf == t
	if own {
		if v := f.turn.settings.verifier.Load(); v != nil {
			return v
		}
	}
	v, err := worldOf(a.VM).shared.verifiers.get(jwtOptions(a, a.VM.Readable(t)))
	if err != nil {
		raiseSetting(a.L, jwtCulprit(a.VM.Readable(t), err), err)
	}
	if own {
		f.turn.settings.verifier.Store(v)
	}
	return v
}

func jwtOptions(a vm.Args, t *lua.LTable) auth.JWTOptions {
	o := auth.JWTOptions{Algorithm: jwtText(a, t, "algorithm")}
	if secret := jwtText(a, t, "secret"); secret != "" {
		o.Secret = []byte(secret)
	}
	if key := jwtText(a, t, "public_key"); key != "" {
		o.PublicKey = []byte(key)
	}
	o.Issuer, o.Audience, o.Required = jwtList(a, t, "issuer"), jwtList(a, t, "audience"), jwtList(a, t, "required")
	switch v := t.RawGetString("leeway").(type) {
	case *lua.LNilType:
	case lua.LNumber:
		o.Leeway = time.Duration(float64(v) * float64(time.Second))
	default:
		a.Raise("%s: leeway is a number of seconds", a.Func.Name)
	}
	return o
}

func jwtText(a vm.Args, t *lua.LTable, name string) string {
	switch v := t.RawGetString(name).(type) {
	case *lua.LNilType:
	case lua.LString:
		if len(v) <= maxJWTText {
			return string(v)
		}
		a.Raise("%s: %s is longer than %d bytes", a.Func.Name, name, maxJWTText)
	default:
		a.Raise("%s: %s is a string, not a %s", a.Func.Name, name, v.Type())
	}
	return ""
}

func jwtList(a vm.Args, t *lua.LTable, name string) []string {
	switch v := t.RawGetString(name).(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		return []string{string(v)}
	case *lua.LTable:
		items := stringsOf(v)
		long := func(item string) bool { return len(item) > maxJWTText }
		if n := vm.Thaw(v).MaxN(); len(items) == n && n <= maxJWTItems && !slices.ContainsFunc(items, long) {
			return items
		}
	}
	a.Raise("%s: %s is a list of at most %d strings", a.Func.Name, name, maxJWTItems)
	return nil
}

// What the settings of a verifier may be at most.
const (
	maxJWTText  = 64 << 10
	maxJWTItems = 256
)

// jwtCulprit guesses which setting an impossible verifier fails for.
func jwtCulprit(t *lua.LTable, err error) string {
	for _, name := range []string{"algorithm", "leeway", "public_key", "secret"} {
		if strings.Contains(err.Error(), name) && t.RawGetString(name) != lua.LNil {
			return name
		}
	}
	if t.RawGetString("public_key") != lua.LNil {
		return "public_key"
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
	known map[[sha256.Size]byte]*auth.JWT
}

const maxVerifiers = 256

func (c *verifiers) get(o auth.JWTOptions) (*auth.JWT, error) {
	id := verifierID(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.known[id]; v != nil {
		return v, nil
	}
	v, err := auth.NewJWT(o)
	if err != nil {
		return nil, err
	}
	if c.known == nil || len(c.known) >= maxVerifiers {
		c.known = map[[sha256.Size]byte]*auth.JWT{}
	}
	c.known[id] = v
	return v, nil
}

// verifierID tells apart what options say; no secret can be read from it.
func verifierID(o auth.JWTOptions) [sha256.Size]byte {
	parts := []string{string(o.Secret), string(o.PublicKey), o.Algorithm, o.Leeway.String()}
	for _, names := range [][]string{o.Issuer, o.Audience, o.Required} {
		parts = append(parts, strings.Join(names, "\x00"), "\x01")
	}
	var all []byte
	for _, part := range parts {
		all = append(all, byte(len(part)), byte(len(part)>>8), byte(len(part)>>16))
		all = append(all, part...)
	}
	return sha256.Sum256(all)
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
