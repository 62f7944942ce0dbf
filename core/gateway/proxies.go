package gateway

import (
	"net/netip"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

// hearProxies settles who the client is. What an untrusted peer says about earlier hops is replaced by what the connection shows; what a
// trusted one says stands, unless it is spelled as no proxy would: then it is a client's that slipped through.
func (g *Generation) hearProxies(x *core.Exchange) {
	r := &x.Request
	peer := r.RemoteAddr.Addr()
	trusted := g.trusts(peer)
	claims := false
	for _, f := range r.Header.Fields() {
		if claim, odd := claimOf(f.Name); claim && (odd || !trusted) {
			claims = true
			break
		}
	}
	if claims {
		replaceClaims(&r.Header, peer, r.Scheme, trusted)
	}
	if r.ClientIP = peer; !trusted {
		return
	}
	var lines [8][]byte
	list := lines[:0]
	for _, f := range r.Header.Fields() {
		if f.Kind == core.KindForwardedFor {
			list = append(list, f.Value)
		}
	}
	r.ClientIP = auth.ClientIP(peer, g.trusted, list)
	if proto := r.Header.GetKind(core.KindForwardedProto); core.EqualFoldString(proto, "https") {
		r.Scheme = "https"
	}
}

// trusts tells whether a peer is a trusted proxy. One that came over a Unix socket has no address.
func (g *Generation) trusts(peer netip.Addr) bool {
	if !peer.IsValid() {
		return g.trustUnix
	}
	for _, p := range g.trusted {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

// claimOf tells whether a name says something about earlier hops: X-Forwarded-*, Forwarded, X-Real-IP, in any spelling that folds to the
// same CGI name. odd is a spelling that is not the proxies' own.
func claimOf(name []byte) (claim, odd bool) {
	if len(name) < len("forwarded") {
		return false, false
	}
	switch name[0] | 0x20 {
	case 'x':
		claim = foldsTo(name, "x_real_ip", true) || foldsTo(name, "x_forwarded_", false)
	case 'f':
		claim = foldsTo(name, "forwarded", true)
	}
	if !claim {
		return false, false
	}
	for _, c := range name {
		odd = odd || c != '-' && fold(c) == '_'
	}
	return true, odd
}

// foldsTo tells whether a name folds to want, or begins so.
func foldsTo(name []byte, want string, whole bool) bool {
	if len(name) < len(want) || whole && len(name) != len(want) {
		return false
	}
	for i := range len(want) {
		if fold(name[i]) != want[i] {
			return false
		}
	}
	return true
}

func replaceClaims(h *core.Header, peer netip.Addr, scheme string, trusted bool) {
	realIP, forwarded := h.Has("X-Real-IP"), h.Has("Forwarded")
	h.DelFunc(func(f *core.Field) bool {
		claim, odd := claimOf(f.Name)
		return claim && (odd || !trusted)
	})
	if realIP && !trusted && peer.IsValid() {
		h.Set("X-Real-IP", peer.String())
	}
	if forwarded && !trusted {
		node := peer.String()
		switch {
		case !peer.IsValid():
			node = "unknown" // RFC 7239 section 6.2
		case peer.Is6():
			node = `"[` + node + `]"`
		}
		h.Set("Forwarded", "for="+node+";proto="+scheme)
	}
}
