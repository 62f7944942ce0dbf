package conf

import (
	"fmt"
	"slices"
	"strings"
)

// Values of ListenerTLS.Client.
const (
	ClientOff      = "off"      // no certificate is asked for
	ClientOptional = "optional" // one that is sent must be good
	ClientRequired = "required" // no handshake without a good one
)

// ListenerTLS says with which certificates a listener speaks TLS.
type ListenerTLS struct {
	Pos          Pos
	On           bool `key:"-"` // there is a [listener.tls]
	Certificates []Certificate
	SelfSigned   []string // names of a certificate that is made at start; for trying out
	Client       string   // ClientOff, ClientOptional or ClientRequired
	ClientCA     File     `key:"client_ca"` // who signs the certificates of clients
}

// Certificate is a chain with its private key, both PEM.
type Certificate struct {
	Pos       Pos
	Cert, Key File
}

// String names both files.
func (c Certificate) String() string { return fmt.Sprintf("%s, %s", c.Cert, c.Key) }

// Equal tells whether two say the same, wherever they stand, and the files hold the same.
func (t ListenerTLS) Equal(other ListenerTLS) bool { return same(t, other) }

var listenerTLSSection = section[ListenerTLS]{
	custom("certificates", (*binder).bindCertificates, "cert", "key"),
	list("self_signed", func(t *ListenerTLS) *[]string { return &t.SelfSigned }, certificateName),
	oneOf("client", func(t *ListenerTLS) *string { return &t.Client }, ClientOff, ClientOptional, ClientRequired),
	file("client_ca", func(t *ListenerTLS) *File { return &t.ClientCA }),
}

var certificateSection = section[Certificate]{
	file("cert", func(c *Certificate) *File { return &c.Cert }),
	file("key", func(c *Certificate) *File { return &c.Key }),
}

// bindCertificates reads a list of tables { cert, key }.
func (b *binder) bindCertificates(key string, v Value, t *ListenerTLS) {
	for i, table := range b.tables(key, v) {
		c := Certificate{Pos: table.Pos}
		path := fmt.Sprintf("%s[%d]", key, i)
		b.note(path, table.Pos)
		certificateSection.bind(b, path, table, &c)
		if !b.written(path+".cert") || !b.written(path+".key") {
			b.errs.Add(table.Pos, path, `wants a certificate and its key: write { cert = "site.crt", key = "site.key" }`)
			continue
		}
		t.Certificates = append(t.Certificates, c)
	}
}

// checkListenerTLS wants something to show to clients, and something to judge theirs by.
func (b *binder) checkListenerTLS(path string, t *ListenerTLS) {
	if !t.On {
		return
	}
	switch {
	case b.written(path+".self_signed") && b.written(path+".certificates"):
		b.errs.Add(b.pos[path+".self_signed"], path+".self_signed", "stands beside certificates: take one of the two away")
	case b.written(path+".self_signed") && len(t.SelfSigned) == 0 && !b.faulty(path+".self_signed["):
		b.errs.Add(b.pos[path+".self_signed"], path+".self_signed", `is empty: write the names it is for, such as ["localhost"]`)
	case b.written(path + ".self_signed"):
	case !b.written(path + ".certificates"):
		b.errs.Add(t.Pos, path, `has no certificates: write certificates = [{ cert = "site.crt", key = "site.key" }]`)
	case len(t.Certificates) == 0:
		b.errs.Add(b.pos[path+".certificates"], path+".certificates", `is empty: write at least one { cert = "site.crt", key = "site.key" }`)
	}
	wanted := t.Client == ClientOptional || t.Client == ClientRequired
	switch {
	case wanted && !b.written(path+".client_ca"):
		b.errs.Add(b.pos[path+".client"], path+".client", `needs client_ca = "ca.crt", which says whose certificates are good`)
	case !wanted && b.written(path+".client_ca"):
		b.errs.Add(b.pos[path+".client_ca"], path+".client_ca", `counts for nothing without client = "required" or "optional"`)
	}
}

// faulty tells whether a fault was found in a key that begins so.
func (b *binder) faulty(prefix string) bool {
	return slices.ContainsFunc(b.errs, func(e Error) bool { return strings.HasPrefix(e.Key, prefix) })
}

// certificateName checks a DNS name or an IP address.
func certificateName(text string) string {
	if authority(text) != text || strings.Contains(text, ":") {
		return fmt.Sprintf(`%q is no name for a certificate: write one such as "localhost" or "127.0.0.1", in lower case`, shorten(text))
	}
	return ""
}

// UpstreamTLS says how the gateway speaks TLS to endpoints with the scheme https.
type UpstreamTLS struct {
	Pos        Pos
	CA         File   `key:"ca"` // who signs the endpoints' certificates; none: the system's list
	Cert       File   // the gateway's own, for endpoints that ask
	Key        File   // its private key
	ServerName string // the name that the certificate must have; "": the endpoint's host
	Insecure   bool   // certificates are not verified
}

// Equal tells whether two say the same, wherever they stand, and the files hold the same.
func (t UpstreamTLS) Equal(other UpstreamTLS) bool { return same(t, other) }

var upstreamTLSSection = section[UpstreamTLS]{
	file("ca", func(t *UpstreamTLS) *File { return &t.CA }),
	file("cert", func(t *UpstreamTLS) *File { return &t.Cert }),
	file("key", func(t *UpstreamTLS) *File { return &t.Key }),
	text("server_name", func(t *UpstreamTLS) *string { return &t.ServerName }, certificateName),
	boolean("insecure", func(t *UpstreamTLS) *bool { return &t.Insecure }),
}

// checkUpstreamTLS holds the protocol, the schemes of the endpoints and [upstream.tls] against each other.
func (b *binder) checkUpstreamTLS(path string, u *Upstream) {
	secure := 0
	for _, e := range u.Endpoints {
		switch {
		case e.Scheme == "https" && u.Protocol == ProtocolH2C:
			b.errs.Add(e.Pos, path+".endpoints", `%s wants TLS and the protocol is "h2c", which has none: write protocol = "h2"`, e.URL)
		case e.Scheme == "http" && u.Protocol == ProtocolH2:
			b.errs.Add(e.Pos, path+".endpoints", `%s has no TLS and the protocol is "h2", which wants it: write https:// or protocol = "h2c"`, e.URL)
		}
		if e.Scheme == "https" {
			secure++
		}
	}
	tls := path + ".tls"
	switch {
	case b.written(tls+".cert") && !b.written(tls+".key"):
		b.errs.Add(b.pos[tls+".cert"], tls+".cert", `needs its private key: write key = "client.key"`)
	case b.written(tls+".key") && !b.written(tls+".cert"):
		b.errs.Add(b.pos[tls+".key"], tls+".key", `needs its certificate: write cert = "client.crt"`)
	}
	if b.written(tls) && secure == 0 && len(u.Endpoints) > 0 {
		b.warn.Add(u.TLS.Pos, tls, "counts for nothing, because no endpoint has the scheme https")
	}
	if u.TLS.Insecure {
		b.warn.Add(b.pos[tls+".insecure"], tls+".insecure", "anybody between here and the endpoints can read and change everything")
	}
}
