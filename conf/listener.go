package conf

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Listener is an address that clients connect to.
type Listener struct {
	Pos      Pos
	Name     string      // that routes may ask for; "" for none
	Address  string      // host:port, where the port 0 lets the system choose, or unix:/path
	Mode     Mode        // permissions of a Unix socket
	Protocol string      // ListenAuto, ProtocolH1 or ProtocolH2
	TLS      ListenerTLS `key:"tls"`

	ProxyProtocol []netip.Prefix // whose connections begin with a PROXY header
	ProxyUnix     bool           `key:"proxy_protocol.unix"` // likewise whoever comes over a Unix socket
}

// Equal tells whether two listeners say the same, wherever they stand.
func (l Listener) Equal(other Listener) bool { return same(l, other) }

// ListenAuto leaves the protocol to each client: HTTP/1.1, or HTTP/2 when it begins with that.
const ListenAuto = "auto"

const defaultListener = "127.0.0.1:8080"

// defaultMode lets owner and group of the process connect to a Unix socket.
const defaultMode = 0o660

var listenerSection = section[Listener]{
	text("name", func(l *Listener) *string { return &l.Name }, displayName),
	text("address", func(l *Listener) *string { return &l.Address }, listenAddress),
	peersOf("proxy_protocol", func(l *Listener) (*[]netip.Prefix, *bool) { return &l.ProxyProtocol, &l.ProxyUnix }),
	fileMode("mode", func(l *Listener) *Mode { return &l.Mode }),
	oneOf("protocol", func(l *Listener) *string { return &l.Protocol }, ListenAuto, ProtocolH1, ProtocolH2),
	sub("tls", listenerTLSSection, func(l *Listener, p Pos) *ListenerTLS { l.TLS.Pos, l.TLS.On = p, true; return &l.TLS }),
}

// bindListeners reads [[listener]]; none written means the default one.
func (b *binder) bindListeners(key string, v Value, c *Config) {
	seen := map[string]Pos{}
	for i, t := range b.tables(key, v) {
		l := Listener{Pos: t.Pos, Mode: defaultMode, Protocol: ListenAuto, TLS: ListenerTLS{Client: ClientOff}}
		path := fmt.Sprintf("%s[%d]", key, i)
		b.note(path, t.Pos)
		listenerSection.bind(b, path, t, &l)
		b.checkListenerTLS(path+".tls", &l.TLS)
		b.checkListenerName(path, l.Name, c)
		if b.written(path+".mode") && l.Address != "" && !isUnix(l.Address) {
			b.errs.Add(b.pos[path+".mode"], path+".mode", `is for Unix sockets: take it away, or write address = "unix:/run/moongate.sock"`)
		}
		first, twice := seen[l.Address]
		switch {
		case !b.written(path + ".address"):
			b.errs.Add(t.Pos, path+".address", `is missing: write address = "127.0.0.1:8080"`)
		case twice && l.Address != "" && !anyPort(l.Address):
			b.errs.Add(t.Pos, path+".address", "%s is listened on already, in line %d", l.Address, first.Line)
		default:
			seen[l.Address] = t.Pos
			c.Listeners = append(c.Listeners, l)
		}
	}
}

func (b *binder) checkListenerName(path, name string, c *Config) {
	for _, other := range c.Listeners {
		if name != "" && other.Name == name {
			b.errs.Add(b.pos[path+".name"], path+".name", "%q is the name of the listener in line %d: give each its own", name, other.Pos.Line)
		}
	}
}

// checkRouteListeners wants the listeners that routes ask for to be there.
func (b *binder) checkRouteListeners(c *Config) {
	var names []string
	for _, l := range c.Listeners {
		if l.Name != "" {
			names = append(names, l.Name)
		}
	}
	for i := range c.Routes {
		r := &c.Routes[i]
		if u := c.Upstream(r.Upstream); u != nil && len(r.Upgrades) > 0 && u.Protocol != ProtocolH1 {
			b.warn.Add(b.where("route."+r.Name+".upgrade", r.Pos), "route."+r.Name+".upgrade",
				"counts for nothing, because the upstream speaks %s: only HTTP/1.1 can switch protocols", u.Protocol)
		}
		key := "route." + r.Name + ".listener"
		for _, name := range r.Listeners {
			switch {
			case slices.Contains(names, name):
			case len(names) == 0:
				b.errs.Add(b.where(key, r.Pos), key, "there is no listener %q: write name = %q into its [[listener]]", name, name)
			default:
				b.errs.Add(b.where(key, r.Pos), key, "there is no listener %q%s: it is one of %s", name, nearHint(name, names), quotedList(names))
			}
		}
	}
}

// listenAddress checks "host:port", where the host may be empty, an address or a name, and "unix:/path".
func listenAddress(text string) string {
	if isUnix(text) {
		return unixSocket(text)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Sprintf(`%q is no address to listen on: write "127.0.0.1:8080" or ":8080"`, text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port[0] == '+' || n > 65535 {
		return fmt.Sprintf("the port %q is no number from 0 to 65535", port)
	}
	if host == "" || isHostName(host) {
		return ""
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Sprintf("the host %q is neither an IP address nor a name", host)
	}
	return ""
}

// anyPort tells whether the system chooses the port.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}

// isHostName tells whether text has the form of a DNS name (RFC 1123 section 2.1; underscores are let through, as
// service names in clusters have them).
func isHostName(text string) bool {
	if text == "" || len(text) > 253 {
		return false
	}
	label := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.':
			if label == 0 || text[i-1] == '-' {
				return false
			}
			label = 0
		case c == '-' && label == 0:
			return false
		case c == '-', c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			if label++; label > 63 {
				return false
			}
		default:
			return false
		}
	}
	return label > 0 && text[len(text)-1] != '-'
}
