package luaapi

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/redis"
)

// kind is one kind of verifier: which settings it has, and how one is made of them.
type kind struct {
	name string
	main string // the setting that is named when none of those that an error names is there
	doc  string
	// read reads all settings and gives what makes the verifier, when none of equal settings is there.
	read func(w *world, f *fields) func() (auth.Verifier, error)
}

// kinds are all of them. gw.auth has a function for each, and a policy knows them by their names.
var kinds = []kind{
	{"jwt", "secret", "JSON Web Tokens: " + tokenSettings + " " + placeSettings("`Authorization: Bearer`"), readJWTKind},
	{"api_key", "keys", "API keys, of which only a digest is kept. `keys` maps users to `{ hash = \"sha256:...\", tier, rate, routes, expires }`; `key_lines` is a text " +
		"with one such entry a line, as JSON with its `user`. `redis` names a [redis.NAME] that is asked for the " +
		"others, under `redis_prefix` (`api_key:`) and the digest's digits; its answers are kept for `keep` (1m). " + placeSettings("the header `X-Api-Key`") +
		" The claims are `tier`, `rate` and `routes`, which are the only ones that the key is good for.", readAPIKeys},
	{"basic", "users", "Passwords (RFC 7617). `users` is a text with lines of user:hash as `htpasswd -B` makes them (bcrypt), or with argon2. A password that was right " +
		"is remembered for `keep` (1m).", readBasic},
	{"hmac", "apps", "Requests signed with a shared key, as docs/auth/hmac.md says. `apps` maps names to secrets, or to `{ secret, hash = \"sha512\" }`; " +
		"`signed_headers` lists headers that must be signed too; `redis` names a [redis.NAME] in which nonces are remembered for all gateways, under `redis_prefix` (`nonce:`).", readHMAC},
	{"introspection", "url", "Tokens that their issuer is asked about (RFC 7662), at `url`, as `client_id` with `client_secret`, which go in the form with `post = true`. `issuer`, " +
		"`audience`, `claims` and `user` as for jwt; answers are remembered for `keep` (1m) and never past exp. `timeout` (5s), `ca` (PEM). " +
		placeSettings("`Authorization: Bearer`"), readIntrospection},
	{"forward", "url", "Requests that another service decides about: it is asked at `url` with the headers of `send` (Authorization, Cookie). An answer of 2xx lets " +
		"in; its header `user` (X-Auth-User) names the caller, unless `optional`, and those of `take` become claims. From 300 to 499 its answer is the client's. Else: 503. " +
		"`keep` (0s) remembers good answers; `timeout` (5s), `ca` (PEM).", readForward},
	{"certificate", "allow", "TLS certificates of clients, which the listener has verified. `user` is the part that names the caller: `cn` (default), `subject`, `san` or " +
		"`fingerprint`; `allow` maps subjects, alternative names or fingerprints to callers, and nobody else is let in. The claims are `subject`, `cn`, `o`, `ou`, `sans`, " +
		"`fingerprint`.", readCertificate},
	{"ldap", "url", "Passwords that a directory at `url` knows. Callers bind as `user_dn`, or are sought under `base` by `filter`, as `bind_dn` with `bind_password`; %s is the " +
		"user. `attributes` become claims, as lists; `claims` are conditions on them. `start_tls`, `ca` (PEM), `keep` (1m), `timeout` (5s).", readLDAP},
	{"network", "networks", "Addresses of clients. `networks` maps names to lists of networks, or to a text with one a line; `deny` is such a list of who is nobody.", readNetwork},
}

const tokenSettings = "`secret`, `public_key` (PEM), `jwks` (a key set), `jwks_url` or `discovery = true` (the key set of the issuer); `algorithm`, `issuer`, `audience`, " +
	"`required`, `claims` (conditions), `user` (the claim that names the caller: sub), `leeway` (0s), `revoked` (a store of gw.shared with ids), " +
	"`revoked_ids`; for key sets that are fetched `refresh` (15m), `cooldown` (30s), `timeout` (5s), `ca` (PEM); or `issuers`, a list of tables with all of these."

func placeSettings(usual string) string {
	return "They stand in " + usual + ", or where `header`, `query` or `cookie` says."
}

// readPlace reads where a proof stands.
func readPlace(f *fields) auth.Place {
	return auth.Place{Header: f.text("header"), Query: f.text("query"), Cookie: f.text("cookie")}
}

func readJWTKind(w *world, f *fields) func() (auth.Verifier, error) {
	tokens := readTokens(w, f)
	place, realm := readPlace(f), f.text("realm")
	return func() (auth.Verifier, error) {
		v, err := tokens()
		if err != nil {
			return nil, err
		}
		return auth.NewTokens(v, place, realm)
	}
}

func readAPIKeys(w *world, f *fields) func() (auth.Verifier, error) {
	o := auth.APIKeysOptions{Place: readPlace(f), Realm: f.text("realm")}
	f.each("keys", func(user string, v lua.LValue) {
		in := f.inner("keys."+user, v)
		k := auth.APIKey{User: user, Hash: in.text("hash"), Tier: in.text("tier"), Rate: in.text("rate"), Routes: in.list("routes")}
		if text := in.text("expires"); text != "" {
			var err error
			if k.Expires, err = time.Parse(time.RFC3339, text); err != nil {
				in.bad("expires", `is no time: write "2027-01-01T00:00:00Z"`)
			}
		}
		in.complete()
		o.Keys = append(o.Keys, k)
	})
	lines := f.text("key_lines")
	if client := f.redis(w); client != nil {
		o.Store, o.Keep = auth.RedisAPIKeys(client, cmp.Or(f.text("redis_prefix"), "api_key:")), f.duration("keep")
	}
	return func() (auth.Verifier, error) {
		more, err := auth.ParseAPIKeys(lines)
		if err != nil {
			return nil, named("key_lines", err)
		}
		o.Keys = append(o.Keys, more...)
		return auth.NewAPIKeys(o)
	}
}

func readBasic(_ *world, f *fields) func() (auth.Verifier, error) {
	o := auth.BasicOptions{Users: f.text("users"), Realm: f.text("realm"), Keep: f.keep()}
	return func() (auth.Verifier, error) { return auth.NewBasic(o) }
}

// keep is how long something is remembered: 0s is not at all, where 0 stands for the default.
func (f *fields) keep() time.Duration {
	if d := f.duration("keep"); d != 0 || !f.has("keep") {
		return d
	}
	return -1
}

func readHMAC(w *world, f *fields) func() (auth.Verifier, error) {
	o := auth.HMACOptions{Signed: f.list("signed_headers"), Realm: f.text("realm")}
	f.each("apps", func(id string, v lua.LValue) {
		app := auth.HMACApp{ID: id}
		if secret, ok := v.(lua.LString); ok {
			app.Secret = []byte(secret)
			f.note(id, string(secret))
		} else {
			in := f.inner("apps."+id, v)
			app.Secret = []byte(in.text("secret"))
			switch name := in.text("hash"); name {
			case "", "sha256":
			case "sha512":
				app.SHA512 = true
			default:
				in.bad("hash", "is sha256 or sha512")
			}
			in.complete()
		}
		o.Apps = append(o.Apps, app)
	})
	if client := f.redis(w); client != nil {
		o.Nonces = auth.RedisNonces(client, cmp.Or(f.text("redis_prefix"), "nonce:"))
	}
	return func() (auth.Verifier, error) { return auth.NewHMAC(o) }
}

// redis is the Redis that a setting names, nil when there is none. Another client under the same name makes another verifier.
func (f *fields) redis(w *world) *redis.Client {
	name := f.text("redis")
	if name == "" {
		return nil
	}
	client := w.redis.Get(name)
	if client == nil {
		f.bad("redis", "there is no [redis.%s]", visible(name))
	}
	f.note("redis", fmt.Sprintf("%p", client))
	return client
}

// asking is how many idle connections are kept to a service that is asked about requests.
const asking = 32

func readIntrospection(_ *world, f *fields) func() (auth.Verifier, error) {
	o := auth.IntrospectionOptions{URL: f.text("url"), ClientID: f.text("client_id"), ClientSecret: f.text("client_secret"), Post: f.boolean("post"),
		Issuer: f.list("issuer"), Audience: f.list("audience"), Rules: f.rules("claims"), User: f.text("user"), Keep: f.keep(), Timeout: f.duration("timeout"),
		Place: readPlace(f), Realm: f.text("realm")}
	ca := f.bytes("ca")
	return func() (_ auth.Verifier, err error) {
		if o.Client, err = auth.NewClient(auth.ClientOptions{CA: ca, Idle: asking}); err != nil {
			return nil, err
		}
		v, err := auth.NewIntrospection(o)
		return v, named("url", err)
	}
}

func readForward(_ *world, f *fields) func() (auth.Verifier, error) {
	o := auth.ForwardOptions{URL: f.text("url"), Take: f.list("take"), User: f.text("user"), Optional: f.boolean("optional"), Keep: f.duration("keep"),
		Timeout: f.duration("timeout")}
	if f.has("send") {
		o.Send = append([]string{}, f.list("send")...)
	}
	ca := f.bytes("ca")
	return func() (_ auth.Verifier, err error) {
		if o.Client, err = auth.NewClient(auth.ClientOptions{CA: ca, Idle: asking}); err != nil {
			return nil, err
		}
		v, err := auth.NewForward(o)
		return v, err
	}
}

func readCertificate(_ *world, f *fields) func() (auth.Verifier, error) {
	o := auth.CertificateOptions{User: f.text("user"), Allow: map[string]string{}}
	f.each("allow", func(key string, v lua.LValue) {
		user, ok := v.(lua.LString)
		if !ok {
			f.bad("allow", "maps subjects, alternative names or fingerprints to callers")
		}
		f.note(key, string(user))
		o.Allow[key] = string(user)
	})
	return func() (auth.Verifier, error) { return auth.NewCertificate(o) }
}

func readLDAP(_ *world, f *fields) func() (auth.Verifier, error) {
	o := auth.LDAPOptions{URL: f.text("url"), StartTLS: f.boolean("start_tls"), CA: f.bytes("ca"), UserDN: f.text("user_dn"), BindDN: f.text("bind_dn"),
		BindPassword: f.text("bind_password"), Base: f.text("base"), Filter: f.text("filter"), Attributes: f.list("attributes"), Rules: f.rules("claims"),
		Realm: f.text("realm"), Keep: f.keep(), Timeout: f.duration("timeout")}
	return func() (auth.Verifier, error) { return auth.NewLDAP(o) }
}

func readNetwork(_ *world, f *fields) func() (auth.Verifier, error) {
	var list []auth.Network
	f.each("networks", func(name string, v lua.LValue) {
		list = append(list, auth.Network{User: name, Prefixes: f.networks("networks."+name, v)})
	})
	deny := f.networks("deny", f.get("deny"))
	return func() (auth.Verifier, error) { return auth.NewNetworkVerifier(list, deny) }
}

// networks reads a list of networks, or a text with one a line.
func (f *fields) networks(name string, v lua.LValue) []netip.Prefix {
	var lines string
	switch v := v.(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		lines = string(v)
	case *lua.LTable:
		lines = strings.Join(f.strings(name, v), "\n")
	default:
		f.bad(name, "is a list of networks, or a text with one a line")
	}
	f.note(name, lines)
	list, err := core.ParseNetworks(lines)
	if err != nil {
		f.bad(name, "%s", err)
	}
	return list
}

// named lets an error begin with the setting's name, by which culprit finds it.
func named(setting string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{setting, err}
}

// fieldError is an error of one setting.
type fieldError struct {
	name string
	err  error
}

func (e *fieldError) Error() string { return e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }
