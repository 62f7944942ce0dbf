package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"time"
)

// Certificate is a chain with its private key, fit for a handshake. It is immutable.
type Certificate struct{ pair tls.Certificate }

// ParseCertificate reads a chain, the site's own certificate first, and its private key, both PEM.
func ParseCertificate(cert, key []byte) (*Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &Certificate{pair}, nil
}

// selfSignedFor is how long a certificate lives that was made here.
const selfSignedFor = 365 * 24 * time.Hour

// SelfSigned makes a certificate for names and addresses that no authority vouches for.
func SelfSigned(names []string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "moongate self-signed"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(selfSignedFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}, nil
}

// Valid tells whether now lies within the time that the certificate is for.
func (c *Certificate) Valid(now time.Time) bool {
	return !now.Before(c.pair.Leaf.NotBefore) && !now.After(c.pair.Leaf.NotAfter)
}

// Authorities are certificates that vouch for others. They are immutable.
type Authorities struct{ pool *x509.CertPool }

// ParseAuthorities reads one or more certificates, PEM.
func ParseAuthorities(pem []byte) (*Authorities, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("holds no certificate in PEM")
	}
	return &Authorities{pool}, nil
}
