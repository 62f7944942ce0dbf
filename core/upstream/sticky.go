package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/balance"
)

// StickyOptions say how clients stay at the endpoint that they were at: by one of these three, or not at all.
type StickyOptions struct {
	Header string // whose value is hashed, as consistent_hash does it
	IP     bool   // the client's address is hashed
	Cookie *StickyCookie
}

// StickyCookie is a cookie that the gateway gives clients, with a mark of their endpoint. The mark is a keyed hash: it tells nobody an address, and
// nobody can make one.
type StickyCookie struct {
	Name       string
	Secret     string // key of the marks; gateways with the same one understand each other's
	Attributes string // of the cookie, each with "; " in front, without Secure
	Secure     bool   // always; else where the request came over https
}

// sticky is what an upstream needs for it.
type sticky struct {
	hash   *balance.ConsistentHash // nil: nothing is hashed but what the balancer hashes
	marks  []string                // by Endpoint.Index; nil: no cookie
	byMark map[string]*core.Endpoint
}

// stick prepares what the options ask for.
func (u *Upstream) stick() {
	o := &u.opts.Sticky
	if o.Header != "" || o.IP {
		u.hash = balance.NewConsistentHash(len(u.endpoints))
	}
	if o.Cookie == nil {
		return
	}
	u.byMark = make(map[string]*core.Endpoint, len(u.endpoints))
	for _, e := range u.endpoints {
		m := mark(o.Cookie.Secret, e)
		u.marks = append(u.marks, m)
		if e.Weight > 0 {
			u.byMark[m] = e
		}
	}
}

// markBytes is how much of the hash a mark shows: enough that nobody guesses one.
const markBytes = 15

func mark(secret string, e *core.Endpoint) string {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = h.Write([]byte("moongate sticky cookie\x00" + e.Upstream + "\x00" + e.Scheme + "\x00" + e.Address))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:markBytes])
}

// Cookie is the one that this upstream gives its clients; nil: none.
func (u *Upstream) Cookie() *StickyCookie { return u.opts.Sticky.Cookie }

// Mark is what a cookie says for an endpoint of this upstream.
func (u *Upstream) Mark(e *core.Endpoint) string { return u.marks[e.Index] }

// Kept is the endpoint that the client's cookie names, whatever its state; nil when it names none. x may be nil.
func (u *Upstream) Kept(x *core.Exchange) *core.Endpoint {
	if u.byMark == nil || x == nil {
		return nil
	}
	value, _ := x.Request.Header.Cookie(u.opts.Sticky.Cookie.Name)
	return u.byMark[string(value)]
}

// Key is what the choice of an endpoint for x goes by where keys are hashed: that of a filter, or else what the options say. "" is none.
func (u *Upstream) Key(x *core.Exchange) string { return u.key(x, x.HashKey) }

func (u *Upstream) key(x *core.Exchange, given string) string {
	switch {
	case u.hash == nil || given != "" || x == nil || x.Request.Own:
		return given
	case u.opts.Sticky.IP && x.Request.ClientIP.IsValid():
		return x.Request.ClientIP.Unmap().WithZone("").String()
	case u.opts.Sticky.Header != "":
		return string(x.Request.Header.Get(u.opts.Sticky.Header))
	}
	return ""
}

// hashes tells whether the upstream sends that key to one endpoint, whatever its balancer.
func (u *Upstream) hashes(key string) bool { return u.hash != nil && key != "" }
