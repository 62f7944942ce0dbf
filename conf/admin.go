package conf

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Admin is the operator's door. On an address that is not loopback everything but /metrics, /healthz and /readyz wants
// the token; without a token those others are closed there.
type Admin struct {
	Pos     Pos
	Address string // host:port; the port 0 lets the system choose
	Token   Secret // empty: none
}

// Equal tells whether two say the same, wherever they stand.
func (a Admin) Equal(other Admin) bool { return same(a, other) }

// Loopback tells whether only this machine reaches the address.
func (a Admin) Loopback() bool {
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

func defaultAdmin() Admin { return Admin{Address: "127.0.0.1:9180"} }

var adminSection = section[Admin]{
	text("address", func(a *Admin) *string { return &a.Address }, listenAddress),
	secret("token", func(a *Admin) *Secret { return &a.Token }),
}

// LoadAdmin reads [admin] alone, for whoever wants to ask the gateway that runs: what else is wrong with the configuration the gateway tells. Of
// what is in o only Env and Files count. When the error, an Errors, says that the table or a file could not be read, what could not has its default.
func LoadAdmin(file string, o Options) (Admin, error) {
	l := newLoader(file, o)
	c := &Config{Admin: defaultAdmin()}
	top := l.read(file, Pos{File: file})
	if top == nil {
		return c.Admin, l.errs.Err()
	}
	l.include(top)
	b := &binder{known: Keys(), pos: map[string]Pos{}}
	if v, ok := top.Get("admin"); ok {
		alone := &Table{}
		alone.set("admin", v)
		configSection.bind(b, "", alone, c)
	}
	errs := slices.DeleteFunc(append(l.errs, b.errs...), func(e Error) bool {
		table, _, _ := strings.Cut(e.Key, ".")
		return table != "" && table != "include" && table != "admin"
	})
	return c.Admin, errs.Err()
}

func (b *binder) checkAdmin(c *Config) {
	pos := b.where("admin.address", c.Admin.Pos)
	for _, l := range c.Listeners {
		if l.Address == c.Admin.Address && !anyPort(l.Address) {
			b.errs.Add(pos, "admin.address", "%s is a listener's address too: give one of them another port", l.Address)
		}
	}
	if !c.Admin.Loopback() && c.Admin.Token == "" {
		b.warn.Add(pos, "admin.token", "is empty and %s is not loopback, so only /metrics, /healthz and /readyz answer", c.Admin.Address)
	}
}
