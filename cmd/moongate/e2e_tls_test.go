package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certCommand makes NAME.crt and NAME.key, signed by itself, good for servers and clients.
func certCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: cert NAME [cn=TEXT] [org=TEXT] [dns=NAME] [uri=URI]")
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		Subject: pkix.Name{CommonName: args[0]}}
	for _, arg := range args[1:] {
		switch key, value, _ := strings.Cut(arg, "="); key {
		case "cn":
			c.Subject.CommonName = value
		case "org":
			c.Subject.Organization = append(c.Subject.Organization, value)
		case "dns":
			c.DNSNames = append(c.DNSNames, value)
		case "uri":
			u, err := url.Parse(value)
			ts.Check(err)
			c.URIs = append(c.URIs, u)
		default:
			ts.Fatalf("unknown setting %q", arg)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	signed, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for name, block := range map[string]*pem.Block{args[0] + ".crt": {Type: "CERTIFICATE", Bytes: signed}, args[0] + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(block), 0o600))
	}
}

// clientTLS is how `http -t NAME` connects: with that certificate, or with none for "-". Who answers is not checked.
func clientTLS(ts *testscript.TestScript, name string) *tls.Config {
	c := &tls.Config{InsecureSkipVerify: true}
	if name == "-" {
		return c
	}
	pair, err := tls.LoadX509KeyPair(ts.MkAbs(name+".crt"), ts.MkAbs(name+".key"))
	if err != nil {
		ts.Fatalf("%s", fmt.Errorf("certificate %s: %w", name, err))
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil } // wanted or not
	return c
}
