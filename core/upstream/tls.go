package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// TLSOptions say how TLS is spoken to endpoints with the scheme https. The zero value verifies them against the system's authorities.
type TLSOptions struct {
	CA         []byte // authorities that vouch for the endpoints, PEM; nil: the system's
	Cert, Key  []byte // the gateway's own certificate with its key, PEM; nil: none
	ServerName string // name that a certificate must have; "": the endpoint's host
	Insecure   bool   // certificates are not verified
}

func (o *TLSOptions) equal(other *TLSOptions) bool {
	return bytes.Equal(o.CA, other.CA) && bytes.Equal(o.Cert, other.Cert) && bytes.Equal(o.Key, other.Key) &&
		o.ServerName == other.ServerName && o.Insecure == other.Insecure
}

// TLSError is an option of TLS that is of no use.
type TLSError struct {
	Option string // "ca" or "cert"
	Err    error
}

func (e *TLSError) Error() string { return e.Option + ": " + e.Err.Error() }
func (e *TLSError) Unwrap() error { return e.Err }

// sessions is how many sessions are kept for each endpoint, to be resumed.
const sessions = 32

// config prepares handshakes with the endpoint at address.
func (o *TLSOptions) config(address string) (*tls.Config, error) {
	c := &tls.Config{ServerName: o.ServerName, InsecureSkipVerify: o.Insecure, ClientSessionCache: tls.NewLRUClientSessionCache(sessions)}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(address)
	}
	if len(o.CA) > 0 {
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, &TLSError{"ca", errors.New("holds no certificate in PEM")}
		}
	}
	if len(o.Cert) > 0 {
		pair, err := tls.X509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, &TLSError{"cert", err}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
