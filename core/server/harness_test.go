package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handler answers with what a function makes of the exchange.
type handler func(x *core.Exchange, c core.Client)

func (h handler) Serve(x *core.Exchange, c core.Client) func() {
	h(x, c)
	return nil
}

func (h handler) Refuse(x *core.Exchange, c core.Client, err *core.Error) {
	answer(x, err.Status, err.Public)
	_ = c.Respond()
}

func answer(x *core.Exchange, status int, body string) {
	x.Response.Status, x.Response.Source = status, core.FromGateway
	x.Response.Header.Set("Content-Type", "text/plain")
	x.Response.Body.Replace([]byte(body))
}

// say answers 200 with a text.
func say(text string) handler {
	return func(x *core.Exchange, c core.Client) {
		answer(x, 200, text)
		_ = c.Respond()
	}
}

// inn is a server of a test with one listener.
type inn struct {
	*server.Server
	*server.Listener
	addr string
}

// patience is how long a test waits for what will come, on the slowest of machines.
const patience = time.Minute

func settings() server.Settings {
	return server.Settings{Head: http1.HeadLimits{Head: 64 << 10, Line: 16 << 10}, HeadTimeout: patience, IdleTimeout: patience,
		BodyIdle: patience}
}

// open serves h until the test ends; t0 is nil for a listener without TLS.
func open(t *testing.T, h server.Handler, set server.Settings, t0 *server.TLS) *inn {
	t.Helper()
	l, err := server.Listen("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Configure(server.Listening{Name: "here"}, t0)
	return openOn(t, l, h, set)
}

// openOn serves h until the test ends, on a listener that nobody serves yet.
func openOn(t *testing.T, l *server.Listener, h server.Handler, set server.Settings) *inn {
	t.Helper()
	i := &inn{server.New(h, set, slog.New(slog.NewTextHandler(io.Discard, nil))), l, l.Addr().String()}
	ended := make(chan error, 1)
	go func() { ended <- i.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := i.Shutdown(ctx); err != nil {
			t.Error("shutdown:", err)
		}
		<-ended
	})
	return i
}

func TestAnIPv4AddressIsIPv4Alone(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:80": "tcp4", "127.0.0.1:80": "tcp4", "[::]:80": "tcp", "[::1]:80": "tcp", ":80": "tcp", "localhost:80": "tcp"} {
		if got := server.Network(address); got != want {
			t.Errorf("%s is %s", address, got)
		}
	}
	l, err := server.Listen("0.0.0.0:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if nc, err := net.Dial("tcp", "[::1]:"+port); err == nil {
		nc.Close()
		t.Error("it is reached by IPv6")
	}
}

// authority is a certificate that signs others.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// sign gives a certificate with its key, both PEM.
func (a *authority) sign(t *testing.T, subject string, names ...string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: subject}, DNSNames: names,
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, k.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// certificate is one of the authority for a server.
func (a *authority) certificate(t *testing.T, names ...string) *server.Certificate {
	t.Helper()
	c, err := server.ParseCertificate(a.sign(t, names[0], names...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// browser is a client that speaks what protocols say to one address, whatever the URL.
func browser(t *testing.T, addr string, c *tls.Config, h2 bool) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP1(!h2)
	p.SetHTTP2(h2)
	p.SetUnencryptedHTTP2(h2)
	tr := &http.Transport{Protocols: p, TLSClientConfig: c, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// get fetches a URL and gives the answer with its whole body.
func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, b.String()
}
