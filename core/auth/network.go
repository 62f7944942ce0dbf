package auth

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/moongate/moongate/core"
)

// Network is a name for whoever comes from somewhere.
type Network struct {
	User     string
	Prefixes []netip.Prefix
}

// NetworkVerifier knows callers by their address. It is safe for concurrent use.
type NetworkVerifier struct {
	list []network
	deny *core.Networks
}

type network struct {
	identity Identity
	in       *core.Networks
}

// NewNetworkVerifier makes a verifier: the first of the list that has the client's address names the caller; an address in deny is
// nobody's.
func NewNetworkVerifier(list []Network, deny []netip.Prefix) (*NetworkVerifier, error) {
	if len(list) == 0 {
		return nil, errors.New("no network: want at least one")
	}
	v := &NetworkVerifier{deny: core.NewNetworks(deny), list: make([]network, len(list))}
	for i, n := range list {
		if !isUser(n.User) {
			return nil, fmt.Errorf("network %d has no name for who comes from there", i+1)
		}
		if len(n.Prefixes) == 0 {
			return nil, fmt.Errorf("network %s is empty", n.User)
		}
		v.list[i].identity = Identity{User: n.User, Kind: "network"}
		v.list[i].in = core.NewNetworks(n.Prefixes)
	}
	return v, nil
}

// Verify implements Verifier. There is no challenge: an address is nothing that a client could send better.
func (v *NetworkVerifier) Verify(_ Waiter, x *core.Exchange) (*Identity, error) {
	if address := x.Request.ClientIP; !v.deny.Contains(address) {
		for i := range v.list {
			if n := &v.list[i]; n.in.Contains(address) {
				return &n.identity, nil
			}
		}
	}
	return nil, errElsewhere
}

var errElsewhere = &Refusal{kind: ErrForbidden, reason: "the client's address is in none of the networks", message: "not from here"}
