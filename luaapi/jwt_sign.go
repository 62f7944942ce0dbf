package luaapi

import (
	"math"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

var jwtSignFuncs = []vm.Func{
	{Name: "gw.jwt.sign",
		Doc: "Signs a JSON Web Token. Settings that no signer can be made of raise: a secret that is too short, a weak or broken key, an algorithm " +
			"that does not go with it.",
		Params: list(p("claims", "table<string, any>", "members as gw.json.encode writes them; exp, nbf and iat are seconds since 1970"),
			p("conf", "table", "secret (at least 32, 48 or 64 bytes), or private_key (PEM); algorithm, by default HS256, or RS256 for an RSA key; kid. "+
				"Other fields are not looked at"),
			opt("seconds", "number", "how long the token is good: sets iat and exp, which claims must not have then")),
		Returns: list(p("token", "string", "")),
		Do:      jwtSign},
}

func jwtSign(a vm.Args) int {
	s := signerArg(a)
	claims := a.Readable(1)
	for _, name := range []string{"exp", "nbf", "iat"} {
		if v := claims.RawGetString(name); v != lua.LNil && v.Type() != lua.LTNumber {
			a.Bad(1, "%s is a number of seconds since 1970, not a %s", name, v.Type())
		}
	}
	text, err := encodeJSON(nil, claims, auth.MaxToken)
	if err != nil {
		a.Bad(1, "%s", err)
	}
	if text[0] != '{' {
		a.Bad(1, "claims have names, got a list")
	}
	if a.Has(3) {
		text = withTimes(a, claims, text)
	}
	a.CheckString(2 * len(text))
	a.VM.Charge(512 + len(text))
	token, err := s.Sign(text)
	if err != nil {
		a.Raise("%s: %s", a.Func.Name, err)
	}
	if len(token) > auth.MaxToken {
		a.Bad(1, "the token would have %d bytes: no verifier reads more than %d", len(token), auth.MaxToken)
	}
	a.L.Push(lua.LString(token))
	return 1
}

// withTimes adds iat and exp to the text of claims.
func withTimes(a vm.Args, claims *lua.LTable, text []byte) []byte {
	seconds := a.Number(3)
	if !(seconds > 0 && seconds < 1e10) {
		a.Bad(3, "a token is good for some seconds, not for %s", describe(a.Get(3)))
	}
	for _, name := range []string{"exp", "iat"} {
		if claims.RawGetString(name) != lua.LNil {
			a.Bad(3, "the claims have %s already", name)
		}
	}
	now := time.Now()
	text = text[:len(text)-1]
	if len(text) > 1 {
		text = append(text, ',')
	}
	text = strconv.AppendInt(append(text, `"iat":`...), now.Unix(), 10)
	text = strconv.AppendInt(append(text, `,"exp":`...), now.Unix()+int64(math.Ceil(seconds)), 10)
	return append(text, '}')
}

// signerID finds a signer in a VM's cache.
type signerID struct{ secret, private, algorithm, kid string }

type signers map[signerID]*auth.Signer

// signerArg makes the signer of argument 2, once in each VM.
func signerArg(a vm.Args) *auth.Signer {
	conf := a.Readable(2)
	id := signerID{signText(a, conf, "secret"), signText(a, conf, "private_key"), signText(a, conf, "algorithm"), signText(a, conf, "kid")}
	c := cachesOf(a.VM)
	if s := c.signers[id]; s != nil {
		return s
	}
	a.VM.Charge(4096)
	o := auth.SignerOptions{Algorithm: id.algorithm, KeyID: id.kid}
	if id.secret != "" {
		o.Secret = []byte(id.secret)
	}
	if id.private != "" {
		o.PrivateKey = []byte(id.private)
	}
	s, err := auth.NewSigner(o)
	if err != nil {
		raiseSetting(a.L, signCulprit(conf, err), err)
	}
	if c.signers == nil || len(c.signers) >= maxKeys {
		c.signers = signers{}
	}
	c.signers[id] = s
	return s
}

// signCulprit guesses which setting an impossible signer fails for.
func signCulprit(conf *lua.LTable, err error) string {
	if conf.RawGetString("private_key") != lua.LNil {
		return "private_key"
	}
	if strings.Contains(err.Error(), "algorithm") && conf.RawGetString("algorithm") != lua.LNil {
		return "algorithm"
	}
	return "secret"
}

// signText is a setting of a signer, "" when it is not there.
func signText(a vm.Args, conf *lua.LTable, name string) string {
	switch v := conf.RawGetString(name).(type) {
	case *lua.LNilType:
	case lua.LString:
		if len(v) <= maxKeyText {
			return string(v)
		}
		a.Bad(2, "%s is longer than %d bytes", name, maxKeyText)
	default:
		a.Bad(2, "%s is a string, not a %s", name, v.Type())
	}
	return ""
}
