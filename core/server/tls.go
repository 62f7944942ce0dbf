package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net"
	"strings"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// TLSOptions are what a listener speaks TLS with.
type TLSOptions struct {
	Certificates []*Certificate // at least one; the first is for names that no other has
	Clients      *Authorities   // who vouches for clients; nil: none is asked for a certificate
	Required     bool           // no handshake without a client's certificate
}

// TLS is a listener's side of handshakes: certificates by name, and what is asked of clients. It is immutable and safe for concurrent use.
type TLS struct {
	configs [3]*tls.Config // by Protocol
	certs   []*Certificate
	exact   map[string][]*Certificate // by lower-case name
	suffix  map[string][]*Certificate // by what follows the asterisk of a wildcard name, dot included
	several bool
}

// NewTLS prepares handshakes.
func NewTLS(o TLSOptions) *TLS {
	t := &TLS{certs: o.Certificates, exact: map[string][]*Certificate{}, suffix: map[string][]*Certificate{}, several: len(o.Certificates) > 1}
	for _, c := range o.Certificates {
		for _, name := range c.pair.Leaf.DNSNames {
			name = strings.ToLower(name)
			if rest, wild := strings.CutPrefix(name, "*"); wild {
				t.suffix[rest] = append(t.suffix[rest], c)
			} else {
				t.exact[name] = append(t.exact[name], c)
			}
		}
	}
	config := &tls.Config{GetCertificate: t.choose, DynamicRecordSizingDisabled: true}
	if o.Clients != nil {
		config.ClientCAs, config.ClientAuth = o.Clients.pool, tls.VerifyClientCertIfGiven
		if o.Required {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	for p, names := range [...][]string{Either: {"h2", "http/1.1"}, HTTP1: {"http/1.1"}, HTTP2: {"h2"}} {
		t.configs[p] = config.Clone()
		t.configs[p].NextProtos = names
	}
	return t
}

// named are the certificates for a host name in lower case (RFC 9525 section 6.3: an asterisk stands for one label).
func (t *TLS) named(host string) []*Certificate {
	if list := t.exact[host]; list != nil {
		return list
	}
	if i := strings.IndexByte(host, '.'); i > 0 {
		return t.suffix[host[i:]]
	}
	return nil
}

// choose finds the certificate that a client asks for and understands.
func (t *TLS) choose(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	list := t.named(strings.ToLower(hello.ServerName))
	if list == nil {
		list = t.certs[:1]
	}
	for _, c := range list {
		if hello.SupportsCertificate(&c.pair) == nil {
			return &c.pair, nil
		}
	}
	return &list[0].pair, nil
}

// secured is a client's connection after its handshake.
type secured struct {
	*http1.Secure
	by   *TLS
	info *core.TLSInfo
}

// shake brings a connection through its handshake, which ctx bounds.
func (t *TLS) shake(ctx context.Context, nc net.Conn, p Protocol) (*secured, error) {
	s := &secured{Secure: http1.SecureServer(nc, t.configs[p]), by: t}
	if err := s.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := s.ConnectionState()
	s.info = &core.TLSInfo{Version: tls.VersionName(state.Version), Cipher: tls.CipherSuiteName(state.CipherSuite), ServerName: state.ServerName,
		Resumed: state.DidResume}
	if len(state.PeerCertificates) > 0 {
		describeClient(s.info, state.PeerCertificates[0])
	}
	return s, nil
}

func describeClient(info *core.TLSInfo, c *x509.Certificate) {
	sum := sha256.Sum256(c.Raw)
	info.ClientSubject, info.ClientFingerprint = c.Subject.String(), hex.EncodeToString(sum[:])
	info.ClientName, info.ClientOrgs = c.Subject.CommonName, c.Subject.Organization
	info.ClientSANs = append(append(info.ClientSANs, c.DNSNames...), c.EmailAddresses...)
	for _, ip := range c.IPAddresses {
		info.ClientSANs = append(info.ClientSANs, ip.String())
	}
	for _, u := range c.URIs {
		info.ClientURIs = append(info.ClientURIs, u.String())
	}
	info.ClientSANs = append(info.ClientSANs, info.ClientURIs...)
}

// misdirected tells whether a request asks for a host whose certificate is another than the one that the connection was opened with
// (RFC 9110 section 15.5.20).
func (s *secured) misdirected(host []byte) bool {
	if !s.by.several || s.info.ServerName == "" {
		return false
	}
	name, asked := hostName(host), strings.ToLower(s.info.ServerName)
	if name == asked {
		return false
	}
	theirs := s.by.named(name)
	if theirs == nil {
		return false
	}
	shown := s.by.named(asked)
	if shown == nil {
		shown = s.by.certs[:1]
	}
	for _, a := range theirs {
		for _, b := range shown {
			if a == b {
				return false
			}
		}
	}
	return true
}

// hostName is an authority's host in lower case, without its port.
func hostName(authority []byte) string {
	host := string(authority)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

var errMisdirected = &core.Error{Status: 421, Public: "this connection was opened for another host"}
