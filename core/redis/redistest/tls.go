package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are files in PEM: an authority, and what it vouches for: a server at 127.0.0.1 and localhost, and a client.
type Certificates struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey string
}

// NewCertificates makes an authority of its own with the certificates of one server and one client, in a folder that ends with the test.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	dir := t.TempDir()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	caKey := newKey(t)
	der := signed(t, ca, ca, caKey, caKey)
	c := Certificates{CA: filepath.Join(dir, "ca.crt")}
	store(t, c.CA, "CERTIFICATE", der)
	leaf := func(name string, serial int64, usage x509.ExtKeyUsage) (cert, key string) {
		k := newKey(t)
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		store(t, cert, "CERTIFICATE", signed(t, template, ca, k, caKey))
		private, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		store(t, key, "PRIVATE KEY", private)
		return cert, key
	}
	c.ServerCert, c.ServerKey = leaf("server", 2, x509.ExtKeyUsageServerAuth)
	c.ClientCert, c.ClientKey = leaf("client", 3, x509.ExtKeyUsageClientAuth)
	return c
}

// StartTLS is Start for a server that speaks TLS at SecureAddress too, with clients that show a certificate alone.
func StartTLS(t testing.TB, c Certificates, settings ...string) *Server {
	t.Helper()
	secure := freeAddress(t)
	s := Start(t, append([]string{"--tls-port", port(secure), "--tls-cert-file", c.ServerCert, "--tls-key-file", c.ServerKey, "--tls-ca-cert-file", c.CA,
		"--tls-auth-clients", "yes"}, settings...)...)
	s.SecureAddress = secure
	return s
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signed(t testing.TB, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func store(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
