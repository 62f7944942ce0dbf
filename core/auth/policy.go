package auth

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moongate/moongate/core"
)

// Require says how the verifiers of a policy are joined.
type Require string

// The ways to join verifiers.
const (
	// RequireAny: the first proof that is good says who calls. Proofs that are wrong beside it do not matter.
	RequireAny Require = "any"
	// RequireAll: every proof must be good. The first one says who calls.
	RequireAll Require = "all"
	// RequireOptional: as any, and who brings no proof at all is anonymous. A wrong one is still refused.
	RequireOptional Require = "optional"
	// RequireNone: nobody is asked, everybody is anonymous.
	RequireNone Require = "none"
)

// Named is a verifier with the name by which a policy knows it.
type Named struct {
	Name     string
	Verifier Verifier
}

// PolicyOptions say who must prove what.
type PolicyOptions struct {
	Require   Require // "" is RequireAny
	Verifiers []Named // asked in this order
	Anonymous string  // user of who brings no proof, where that is accepted; "" for none
}

// Policy joins verifiers. It is a verifier itself, and safe for concurrent use.
type Policy struct {
	o         PolicyOptions
	anonymous Identity
}

// NewPolicy makes a policy.
func NewPolicy(o PolicyOptions) (*Policy, error) {
	switch o.Require {
	case "":
		o.Require = RequireAny
	case RequireAny, RequireAll, RequireOptional:
	case RequireNone:
		o.Verifiers = nil
	default:
		return nil, fmt.Errorf("%q is no policy: want any, all, optional or none", shorten(string(o.Require)))
	}
	if len(o.Verifiers) == 0 && o.Require != RequireNone {
		return nil, errors.New("no verifier: want at least one, or the policy none")
	}
	if o.Anonymous != "" && !isUser(o.Anonymous) {
		return nil, errors.New("the name of who is anonymous cannot stand in a header")
	}
	return &Policy{o: o, anonymous: Identity{User: o.Anonymous, Kind: "anonymous"}}, nil
}

// Verify implements Verifier.
//
// Of several refusals the client learns the most useful: that nobody can tell now (503), else that a good proof is not enough (403), else
// what is wrong with the first proof it brought (401), else that one is missing; with the challenges of all verifiers that could let it in.
func (p *Policy) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	switch p.o.Require {
	case RequireNone:
		return &p.anonymous, nil
	case RequireAll:
		return p.all(w, x)
	}
	var refusals []*Refusal
	for _, n := range p.o.Verifiers {
		identity, err := n.Verifier.Verify(w, x)
		if err == nil {
			return named(identity, n.Name), nil
		}
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok {
			return nil, err
		}
		refusals = append(refusals, refusal)
	}
	worst := weigh(refusals)
	if p.o.Require == RequireOptional && worst.kind == ErrMissing {
		return &p.anonymous, nil
	}
	return nil, worst
}

func (p *Policy) all(w Waiter, x *core.Exchange) (*Identity, error) {
	var first *Identity
	var others []*Identity
	for _, n := range p.o.Verifiers {
		identity, err := n.Verifier.Verify(w, x)
		if err != nil {
			return nil, err
		}
		if identity = named(identity, n.Name); first == nil {
			first = identity
		} else {
			others = append(others, identity)
		}
	}
	if len(others) == 0 {
		return first, nil
	}
	return &Identity{User: first.User, Kind: first.Kind, Verifier: first.Verifier, Claims: first.Claims, Others: others}, nil
}

// named notes which verifier told an identity. Identities are shared, so another is made and kept beside it.
func named(i *Identity, name string) *Identity {
	if name == "" || i.Verifier == name {
		return i
	}
	if known := i.alias.Load(); known != nil && known.Verifier == name {
		return known
	}
	alias := &Identity{User: i.User, Kind: i.Kind, Verifier: name, Claims: i.Claims, Others: i.Others}
	i.alias.Store(alias)
	return alias
}

// weigh chooses among refusals, and gives the chosen one the challenges of all.
func weigh(refusals []*Refusal) *Refusal {
	chosen := refusals[0]
	for _, r := range refusals[1:] {
		if weight(r) > weight(chosen) {
			chosen = r
		}
	}
	out := *chosen
	if out.kind == ErrUnavailable {
		return &out
	}
	out.challenges = nil
	for _, r := range refusals {
		for _, c := range r.challenges {
			if !slices.Contains(out.challenges, c) {
				out.challenges = append(out.challenges, c)
			}
		}
	}
	return &out
}

// weight orders refusals by what they tell. A network that is another (403 without a challenge) tells less than a proof that was brought.
func weight(r *Refusal) int {
	switch {
	case r.kind == ErrUnavailable:
		return 5
	case r == errElsewhere:
		return 0
	case r.kind == ErrForbidden || r.answer != nil:
		return 4
	case r.kind == ErrMissing:
		return 1
	}
	return 3
}
