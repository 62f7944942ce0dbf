package auth

import (
	"sync/atomic"

	"github.com/moongate/moongate/core"
)

// Identity is who a proof says the caller is. It is immutable but for its attachment, and may be used by any number of goroutines.
type Identity struct {
	// User is the caller's name, fit for a header. It is "" only where nobody had to say who he is.
	User string
	// Kind is the kind of proof: "jwt", "api_key", "basic", "hmac", "introspection", "forward", "certificate", "ldap", "network" or
	// "anonymous".
	Kind string
	// Verifier is the name that a policy gives the verifier; "" outside of policies.
	Verifier string
	// Claims is what the proof says beyond the name: a value of kind Map. Null when it says no more.
	Claims Value
	// Others are the identities that the other verifiers of a policy told, where all must pass.
	Others []*Identity

	attachment atomic.Pointer[any]
	alias      atomic.Pointer[Identity] // the same under the name that a policy gives its verifier
}

// Attachment is what Attach has put beside the identity, nil before.
func (i *Identity) Attachment() any {
	if p := i.attachment.Load(); p != nil {
		return *p
	}
	return nil
}

// Attach keeps beside the identity what was made of it, for whoever gets the same identity again. The first one wins: what is returned is
// what is kept.
func (i *Identity) Attach(made any) any {
	if i.attachment.CompareAndSwap(nil, &made) {
		return made
	}
	return *i.attachment.Load()
}

// isUser tells whether a text may name a caller: it names somebody, would not break a header, and is the same once a header was trimmed.
func isUser(text string) bool {
	return text != "" && len(text) <= maxUser && core.IsValue(core.Bytes(text)) && len(core.Trim(core.Bytes(text))) == len(text)
}

// maxUser is the longest name of a caller in bytes.
const maxUser = 1024

// textMap makes claims of pairs of names and texts; empty texts are left out.
func textMap(pairs ...string) Value {
	v := Value{kind: Map}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.members = append(v.members, member{pairs[i], Value{kind: String, text: pairs[i+1]}})
		}
	}
	return v
}

// textList makes a list of texts.
func textList(texts []string) Value {
	v := Value{kind: List}
	for _, text := range texts {
		v.members = append(v.members, member{value: Value{kind: String, text: text}})
	}
	return v
}

// with adds a member to a map, unless it is empty.
func (v Value) with(name string, value Value) Value {
	if value.kind == Null || value.kind == List && len(value.members) == 0 {
		return v
	}
	v.kind = Map
	v.members = append(v.members[:len(v.members):len(v.members)], member{name, value})
	return v
}
