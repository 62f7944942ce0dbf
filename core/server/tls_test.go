package server_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/server"
)

// facts answers with what the connection told.
func facts(x *core.Exchange, c core.Client) {
	r := &x.Request
	text := fmt.Sprintf("%s %s", r.Proto, r.Scheme)
	if i := r.TLS; i != nil {
		text += fmt.Sprintf(" %s %q subject %q sans %v print %d", i.Version, i.ServerName, i.ClientSubject, i.ClientSANs, len(i.ClientFingerprint))
	}
	say(text)(x, c)
}

func TestTLSSpeaksWhatTheClientChooses(t *testing.T) {
	ca := newAuthority(t)
	s := open(t, handler(facts), settings(), server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, "a.test")}}))
	for h2, want := range map[bool]string{false: `HTTP/1.1 https TLS 1.3 "a.test" subject "" sans [] print 0`, true: `HTTP/2.0 https TLS 1.3 "a.test" subject "" sans [] print 0`} {
		c := browser(t, s.addr, &tls.Config{RootCAs: ca.pool()}, h2)
		for range 2 {
			if _, body := get(t, c, "https://a.test/"); body != want {
				t.Errorf("h2 %v: got %s", h2, body)
			}
		}
	}
	if done, failed := s.Handshakes(); done != 2 || failed != 0 {
		t.Errorf("%d handshakes, %d failed", done, failed)
	}
}

func TestCertificatesAreChosenByName(t *testing.T) {
	ca := newAuthority(t)
	s := open(t, say("ok"), settings(), server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{
		ca.certificate(t, "first.test"), ca.certificate(t, "b.test", "*.wild.test")}}))
	for name, want := range map[string]string{"first.test": "first.test", "B.TEST": "b.test", "x.wild.test": "b.test", "a.x.wild.test": "first.test",
		"wild.test": "first.test", "unknown.test": "first.test", "": "first.test"} {
		nc, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := nc.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("%q was shown %s, want %s", name, got, want)
		}
		nc.Close()
	}
}

func TestARequestForAnotherCertificatesHostIsMisdirected(t *testing.T) {
	ca := newAuthority(t)
	s := open(t, say("ok"), settings(), server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{
		ca.certificate(t, "a.test", "a2.test"), ca.certificate(t, "b.test", "*.b.test")}}))
	for _, h2 := range []bool{false, true} {
		for _, c := range []struct {
			sni, host string
			want      int
		}{
			{"a.test", "a.test", 200}, {"a.test", "A.test:443", 200}, {"a.test", "a2.test", 200}, {"a.test", "b.test", 421}, {"a.test", "x.b.test", 421},
			{"b.test", "x.b.test", 200}, {"b.test", "a.test", 421}, {"a.test", "other.test", 200},
		} {
			client := browser(t, s.addr, &tls.Config{ServerName: c.sni, RootCAs: ca.pool()}, h2)
			if resp, _ := get(t, client, "https://"+c.host+"/"); resp.StatusCode != c.want {
				t.Errorf("h2 %v: SNI %s, Host %s: %d, want %d", h2, c.sni, c.host, resp.StatusCode, c.want)
			}
		}
	}
}

func TestCertificatesOfClients(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	clients, err := server.ParseAuthorities(ca.pem())
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.X509KeyPair(ca.sign(t, "tom", "tom.test"))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tls.X509KeyPair(stranger.sign(t, "eve"))
	if err != nil {
		t.Fatal(err)
	}
	cert := []*server.Certificate{ca.certificate(t, "a.test")}
	for _, required := range []bool{false, true} {
		s := open(t, handler(facts), settings(), server.NewTLS(server.TLSOptions{Certificates: cert, Clients: clients, Required: required}))
		for name, c := range map[string]struct {
			cert *tls.Certificate
			want string // "": refused
		}{
			"own":     {&own, `subject "CN=tom" sans [tom.test] print 64`},
			"foreign": {&foreign, ""},
			"none":    {nil, map[bool]string{false: `subject "" sans [] print 0`, true: ""}[required]},
		} {
			conf := &tls.Config{RootCAs: ca.pool()}
			if c.cert != nil {
				conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil }
			}
			resp, err := browser(t, s.addr, conf, false).Get("https://a.test/")
			if c.want == "" {
				if err == nil {
					resp.Body.Close()
					t.Errorf("required %v, %s: was served", required, name)
				}
				continue
			}
			if err != nil {
				t.Errorf("required %v, %s: %v", required, name, err)
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.HasSuffix(string(body), c.want) {
				t.Errorf("required %v, %s: %s", required, name, body)
			}
		}
	}
}

func TestConnectionsOutliveTheirCertificate(t *testing.T) {
	ca := newAuthority(t)
	one := func(name string) *server.TLS {
		return server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, name)}})
	}
	s := open(t, say("ok"), settings(), one("old.test"))
	nc, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "old.test", RootCAs: ca.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	r := bufio.NewReader(nc)
	ask := func() {
		t.Helper()
		_ = nc.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(nc, "GET / HTTP/1.1\r\nHost: old.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		line, err := r.ReadString('\n')
		if err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		for line != "\r\n" {
			line, _ = r.ReadString('\n')
		}
		_, _ = r.Discard(2)
	}
	ask()
	s.Configure(server.Listening{Name: "here"}, one("new.test"))
	ask()
	if _, body := get(t, browser(t, s.addr, &tls.Config{RootCAs: ca.pool()}, true), "https://new.test/"); body != "ok" {
		t.Error(body)
	}
	s.Configure(server.Listening{Name: "here"}, nil)
	if _, body := get(t, browser(t, s.addr, nil, false), "http://plain.test/"); body != "ok" {
		t.Error(body)
	}
	ask()
}

func TestHandshakesThatFailAreCountedAndClosed(t *testing.T) {
	ca := newAuthority(t)
	set := settings()
	set.HeadTimeout = 100 * time.Millisecond
	s := open(t, say("ok"), set, server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, "a.test")}}))
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""} {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(nc, text)
		_ = nc.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadAll(nc); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: the connection stays open", text)
		}
		nc.Close()
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, failed := s.Handshakes(); done != 0 || failed != 2 {
		t.Errorf("%d handshakes, %d failed", done, failed)
	}
}

// TestAClientThatLeavesIsNoticedBelowTLS closes the connection while a request is being worked on.
func TestAClientThatLeavesIsNoticedBelowTLS(t *testing.T) {
	ca := newAuthority(t)
	gone := make(chan bool, 1)
	wait := handler(func(x *core.Exchange, c core.Client) {
		cut := make(chan struct{})
		if !x.Lifeline.Hold(cutter(func() { close(cut) })) {
			close(cut)
		}
		select {
		case <-cut:
			gone <- true
		case <-time.After(patience):
			gone <- false
		}
		x.Lifeline.Release()
		say("late")(x, c)
	})
	s := open(t, wait, settings(), server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, "a.test")}}))
	nc, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "a.test", RootCAs: ca.pool()})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	nc.Close()
	if !<-gone {
		t.Error("nobody noticed")
	}
}

// TestAReaderThatStandsStillIsLetGoOverTLS: TLS cannot go on after a write that has failed, so nobody may try one again.
func TestAReaderThatStandsStillIsLetGoOverTLS(t *testing.T) {
	ca := newAuthority(t)
	for name, change := range map[string]func(*server.Settings){
		"idle": func(set *server.Settings) { set.BodyIdle = 200 * time.Millisecond },
		"slow": func(set *server.Settings) { set.MinRate, set.RateGrace = 1<<20, 100*time.Millisecond },
	} {
		set := settings()
		change(&set)
		ended := make(chan error, 1)
		s := open(t, handler(func(x *core.Exchange, c core.Client) {
			x.Response.Status, x.Response.Source = 200, core.FromUpstream
			x.Response.Body.Attach(io.LimitReader(zeros{}, 1<<40), 1<<40)
			ended <- c.Respond()
		}), set, server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, "a.test")}}))
		nc, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "a.test", RootCAs: ca.pool()})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		select {
		case err := <-ended:
			if !errors.Is(err, http1.ErrTimeout) || errors.As(err, new(*http1.SlowError)) != (name == "slow") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(patience):
			t.Errorf("%s: still writing", name)
		}
		nc.Close()
	}
}

type cutter func()

func (c cutter) Cut() { c() }

func TestSelfSignedCertificatesAreForTheirNames(t *testing.T) {
	c, err := server.SelfSigned([]string{"localhost", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Valid(time.Now()) || c.Valid(time.Now().Add(3*365*24*time.Hour)) {
		t.Error("it is not valid now, or too long")
	}
	s := open(t, say("ok"), settings(), server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{c}}))
	nc, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, name := range []string{"localhost", "127.0.0.1"} {
		if err := nc.ConnectionState().PeerCertificates[0].VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}
