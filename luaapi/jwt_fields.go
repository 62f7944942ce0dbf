package luaapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/store"
	"github.com/moongate/moongate/luaapi/vm"
)

// readTokens reads all settings of tokens and gives what makes their verifier.
func readTokens(w *world, f *fields) func() (auth.TokenVerifier, error) {
	list, _ := f.get("issuers").(*lua.LTable)
	if f.has("issuers") && list == nil {
		f.bad("issuers", "is a list of tables")
	}
	if list == nil || vm.Thaw(list).MaxN() == 0 {
		one := readJWT(w, f)
		return func() (auth.TokenVerifier, error) {
			o, err := one()
			if err != nil {
				return nil, err
			}
			return auth.NewJWT(o)
		}
	}
	for _, name := range []string{"secret", "public_key", "jwks", "jwks_url", "discovery"} {
		if f.has(name) {
			f.bad(name, "does not go with issuers, each of which has its own")
		}
	}
	var all []func() (auth.JWTOptions, error)
	for i := 1; i <= vm.Thaw(list).MaxN(); i++ {
		in := f.inner(fmt.Sprintf("issuers[%d]", i-1), vm.Thaw(list).RawGetInt(i))
		all = append(all, readJWT(w, in))
		in.complete()
	}
	return func() (auth.TokenVerifier, error) {
		var options []auth.JWTOptions
		for _, one := range all {
			o, err := one()
			if err != nil {
				return nil, named("issuers", err)
			}
			options = append(options, o)
		}
		v, err := auth.NewIssuers(options)
		return v, named("issuers", err)
	}
}

// readJWT reads the settings of one key or key set.
func readJWT(w *world, f *fields) func() (auth.JWTOptions, error) {
	o := auth.JWTOptions{Secret: f.bytes("secret"), PublicKey: f.bytes("public_key"), KeySet: f.bytes("jwks"), Algorithm: f.text("algorithm"),
		Issuer: f.list("issuer"), Audience: f.list("audience"), Required: f.list("required"), Leeway: f.duration("leeway"), Rules: f.rules("claims"),
		User: f.text("user"), Revoked: f.revoked(w)}
	source := auth.KeySourceOptions{URL: f.text("jwks_url"), Algorithm: o.Algorithm, Refresh: f.duration("refresh"), Cooldown: f.duration("cooldown"),
		Timeout: f.duration("timeout"), Log: w.log}
	ca := f.bytes("ca")
	if f.boolean("discovery") {
		if len(o.Issuer) != 1 {
			f.bad("discovery", "asks the issuer for its keys: want issuer, one, as a URL")
		}
		source.Issuer = o.Issuer[0]
	}
	return func() (auth.JWTOptions, error) {
		if source.URL == "" && source.Issuer == "" {
			return o, nil
		}
		keys, err := keySource(w, source, ca)
		if err != nil {
			return o, named(map[bool]string{true: "jwks_url", false: "issuer"}[source.URL != ""], err)
		}
		o.Keys = keys
		return o, nil
	}
}

// keySource gives the source of those options: one that is there already, or a new one.
func keySource(w *world, o auth.KeySourceOptions, ca []byte) (*auth.KeySource, error) {
	id := sha256.Sum256(fmt.Appendf(nil, "keys %q %q %q %s %s %s %q", o.URL, o.Issuer, o.Algorithm, o.Refresh, o.Cooldown, o.Timeout, ca))
	kept, ok, err := w.verifiers.Get(id, func() (any, error) {
		client, err := auth.NewClient(auth.ClientOptions{CA: ca})
		if err != nil {
			return nil, err
		}
		o.Fetch = auth.NewFetcher(client)
		return auth.NewKeySource(o)
	})
	if err == nil && !ok {
		err = errors.New("keys are fetched for settings that init has seen")
	}
	if err != nil {
		return nil, err
	}
	return kept.(*auth.KeySource), nil
}

// revoked reads which tokens were taken back: a store of gw.shared that has their ids for keys, and a list or text of ids.
func (f *fields) revoked(w *world) func(id string) bool {
	name := f.text("revoked")
	ids := map[string]bool{}
	for _, text := range f.list("revoked_ids") {
		for line := range strings.Lines(text) {
			if id := strings.TrimSpace(line); id != "" && id[0] != '#' {
				ids[id] = true
			}
		}
	}
	var revoked *store.Store
	if name != "" {
		if revoked = w.shared.store(name); revoked == nil {
			f.bad("revoked", "there are %d stores already", storeLimit)
		}
	}
	if revoked == nil && len(ids) == 0 {
		return nil
	}
	return func(id string) bool {
		if ids[id] || revoked == nil {
			return ids[id]
		}
		v, err := revoked.Get(id)
		return v != nil || err != nil
	}
}
