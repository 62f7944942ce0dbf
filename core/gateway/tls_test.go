package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/gateway"
)

// keyPair writes a self-signed certificate and its key beside the configuration, as NAME.crt and NAME.key.
func keyPair(t *testing.T, dir, name string, hosts ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, name+".crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	put(t, filepath.Join(dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown is the common name of the certificate that a listener shows to who asks for a host.
func (h *house) shown(host string) string {
	h.t.Helper()
	nc, err := tls.Dial("tcp", h.addr, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		h.t.Fatal(err)
	}
	defer nc.Close()
	return nc.ConnectionState().PeerCertificates[0].Subject.CommonName
}

const secureListener = "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n"

func TestCertificatesAreReadAgainAtReload(t *testing.T) {
	url, _ := recorder(t, ok)
	dir := t.TempDir()
	keyPair(t, dir, "site", "site.test")
	keyPair(t, dir, "next", "site.test")
	text := secureListener + "certificates = [{ cert = \"" + dir + "/site.crt\", key = \"" + dir + "/site.key\" }]\n" + route(url)
	h := open(t, text)
	if got := h.shown("site.test"); got != "site" {
		t.Fatal("shown", got)
	}
	for _, ext := range []string{".crt", ".key"} {
		b, err := os.ReadFile(filepath.Join(dir, "next"+ext))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "site"+ext), string(b))
	}
	if got := h.shown("site.test"); got != "site" {
		t.Error("the certificate changed without a reload:", got)
	}
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := h.shown("site.test"); got != "next" {
		t.Error("the certificate did not change:", got)
	}
	put(t, filepath.Join(dir, "site.key"), "no key")
	_, err := h.Reload()
	if err == nil || !strings.Contains(err.Error(), h.file+":4: listener[0].tls.certificates[0]: ") {
		t.Errorf("a broken key: %v", err)
	}
	if got := h.shown("site.test"); got != "next" {
		t.Error("a refused reload changed the certificate:", got)
	}
	h.write(secureListener + "certificates = [{ cert = \"gone.crt\", key = \"gone.key\" }]\n" + route(url))
	if _, err := h.Reload(); err == nil || !strings.Contains(err.Error(), h.file+":4: listener[0].tls.certificates[0].cert: cannot read ") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestASelfSignedCertificateStaysOverReloads(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, secureListener+"self_signed = [\"localhost\"]\n"+route(url))
	serial := func() string {
		nc, err := tls.Dial("tcp", h.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		return nc.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if serial() != before {
		t.Error("it was made anew")
	}
}

func TestTheConformanceExampleIsRight(t *testing.T) {
	c, err := conf.Load("../../conf/examples/conformance/gateway.toml", conf.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen, err := gateway.Check(gateway.Options{}, c)
	if err != nil {
		t.Fatal(err)
	}
	if w := gen.Warnings(); len(w) > 0 {
		t.Error(w)
	}
}
