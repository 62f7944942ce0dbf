package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/server"
)

// The tests of this file are about the ends of connections over TLS: each is said, so that nobody can take a cut for one.

// secureInn serves h over TLS; dial connects to it as a client that speaks a protocol.
func secureInn(t *testing.T, h server.Handler, set server.Settings) (s *inn, dial func(protocol string) *raw) {
	t.Helper()
	ca := newAuthority(t)
	s = open(t, h, set, server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, "gw.test")}}))
	return s, func(protocol string) *raw {
		t.Helper()
		nc, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: "gw.test", RootCAs: ca.pool(), NextProtos: []string{protocol}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(patience))
		r := &raw{t, nc, bufio.NewReader(nc)}
		if protocol == "h2" {
			_, _ = io.WriteString(r, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			_ = r.frame(4, 0, 0, nil)
		}
		return r
	}
}

// ask has an answer to a GET and reads it whole.
func (c *raw) ask(protocol string) {
	c.t.Helper()
	if protocol == "h2" {
		_ = c.frame(1, 5, 1, block(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "gw.test"))
		if got := c.outcome(1); got != "status 200" {
			c.t.Fatal(got)
		}
		return
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: gw.test\r\n\r\n")
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = c.r.ReadString('\n'); err != nil {
			c.t.Fatal(err)
		}
	}
	_, _ = c.r.Discard(len("ok"))
}

// ends reads to the end and wants it to be one that the other side has said.
func (c *raw) ends() {
	c.t.Helper()
	if _, err := io.Copy(io.Discard, c.r); err != nil { // without close_notify it is io.ErrUnexpectedEOF
		c.t.Errorf("the connection ended with %v", err)
	}
}

func TestIdleClientsOfTLSAreToldOfTheEnd(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		for _, reason := range []string{"shutdown", "idle for too long", "no request"} {
			t.Run(protocol+", "+reason, func(t *testing.T) {
				t.Parallel()
				set := settings()
				if reason != "shutdown" {
					set.IdleTimeout, set.HeadTimeout = 3*time.Second, 3*time.Second // also for the handshake on a machine that is busy
				}
				s, dial := secureInn(t, say("ok"), set)
				c := dial(protocol)
				if reason != "no request" {
					c.ask(protocol)
				}
				if reason != "shutdown" {
					c.ends()
					return
				}
				ended := make(chan error, 1)
				go func() { ended <- s.Shutdown(context.Background()) }()
				c.ends()
				c.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestHTTP2AnUploadOverTLSEndsWellWhileTheServerDoes has a client that hears GOAWAY in the middle of a body, and goes on with it.
func TestHTTP2AnUploadOverTLSEndsWellWhileTheServerDoes(t *testing.T) {
	for _, reason := range []string{"shutdown", "other settings"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan struct{})
			set := settings()
			s, dial := secureInn(t, handler(func(x *core.Exchange, c core.Client) {
				b := make([]byte, 1)
				_, _ = x.Request.Body.Read(b)
				close(arrived)
				n, err := io.Copy(io.Discard, &x.Request.Body)
				say(fmt.Sprint(n+1, err))(x, c)
			}), set)
			c := dial("h2")
			_ = c.frame(1, 4, 1, block(":method", "POST", ":scheme", "https", ":path", "/", ":authority", "gw.test"))
			_ = c.frame(0, 0, 1, make([]byte, 1000))
			<-arrived
			ended := make(chan error, 1)
			if reason == "shutdown" {
				go func() { ended <- s.Shutdown(context.Background()) }()
			} else {
				set.Head.Line = 200
				s.Apply(set)
				ended <- nil
			}
			if got := c.outcome(0); got != "goaway 0" {
				t.Error("at first:", got)
			}
			_ = c.frame(1, 5, 3, block(":method", "GET", ":scheme", "https", ":path", "/late", ":authority", "gw.test")) // as one that has not read it
			for range 20 {
				if err := c.frame(0, 0, 1, make([]byte, 1000)); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.frame(0, 1, 1, nil)
			for range 3 { // GOAWAY comes again when its last stream is known
				if got := c.outcome(1); got == "status 200" {
					break
				} else if got != "goaway 0" {
					t.Fatal("the upload:", got)
				}
			}
			c.ends()
			c.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHTTP2AClientThatSendsOnOverTLSLearnsThatItsConnectionEnds is that of connections without TLS.
func TestHTTP2AClientThatSendsOnOverTLSLearnsThatItsConnectionEnds(t *testing.T) {
	for _, reason := range []string{"shutdown", "other settings", "idle for too long"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			set, wait := settings(), 100*time.Millisecond
			if reason == "idle for too long" {
				set.IdleTimeout = time.Second
				wait += set.IdleTimeout
			}
			s, dial := secureInn(t, say("ok"), set)
			c := dial("h2")
			c.ask("h2")
			ended := make(chan error, 1)
			defer func() {
				c.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			switch reason {
			case "shutdown":
				go func() { ended <- s.Shutdown(context.Background()) }()
			case "other settings":
				set.Head.Line = 200
				s.Apply(set)
				ended <- nil
			default:
				ended <- nil
			}
			since := time.Now().Add(wait - 100*time.Millisecond) // the end
			<-time.After(wait)
			_ = c.frame(1, 4, 3, block(":method", "POST", ":scheme", "https", ":path", "/", ":authority", "gw.test"))
			for began := time.Now(); time.Since(began) < 1800*time.Millisecond; <-time.After(20 * time.Millisecond) { // the standard library closes after one second
				if err := c.frame(0, 0, 3, make([]byte, 100)); err != nil {
					if time.Since(since) > 2*time.Second { // the machine stood still, and the connection was not waited for
						return
					}
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
			}
			if got := c.outcome(0); got != "goaway 0" {
				t.Error("the end of the connection came as", got)
			}
			c.ends()
		})
	}
}

// TestConnectionsOfAListenerThatGoesEndBehindTheirNextAnswer: with and without TLS, also in the middle of an upload, and none of them by a reset.
func TestConnectionsOfAListenerThatGoesEndBehindTheirNextAnswer(t *testing.T) {
	arrived := make(chan struct{}, 10)
	s, dial := secureInn(t, handler(func(x *core.Exchange, c core.Client) {
		if x.Request.Method == "POST" {
			_, _ = x.Request.Body.Read(make([]byte, 1))
			arrived <- struct{}{}
			_, _ = io.Copy(io.Discard, &x.Request.Body)
		}
		say("ok")(x, c)
	}), settings())
	idle, up, late, old := dial("h2"), dial("h2"), dial("h2"), dial("http/1.1")
	idle.ask("h2")
	late.ask("h2")
	old.ask("http/1.1")
	post := block(":method", "POST", ":scheme", "https", ":path", "/", ":authority", "gw.test")
	_ = up.frame(1, 4, 1, post)
	_ = up.frame(0, 0, 1, make([]byte, 1000))
	<-arrived
	if err := s.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := up.frame(0, 0, 1, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	_ = up.frame(0, 1, 1, nil)
	up.partsWith(1)
	_, _ = io.WriteString(old, "GET / HTTP/1.1\r\nHost: gw.test\r\n\r\n")
	if answer, err := io.ReadAll(old.r); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") || !strings.Contains(string(answer), "\r\nConnection: close\r\n") {
		t.Errorf("%q %v", answer, err)
	}
	_ = idle.frame(1, 5, 3, block(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "gw.test"))
	idle.partsWith(3)
	_ = late.frame(1, 5, 3, block(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "gw.test"))
	_ = late.frame(1, 4, 5, post)
	for began := time.Now(); time.Since(began) < 1500*time.Millisecond; <-time.After(20 * time.Millisecond) { // it sends on, and does not look
		if err := late.frame(0, 0, 5, make([]byte, 100)); err != nil {
			if time.Since(began) > 1900*time.Millisecond { // the machine stood still, and the connection was not waited for
				return
			}
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	}
	_ = late.frame(0, 1, 5, nil)
	late.partsWith(3)
}

// partsWith wants an answer, GOAWAY before it or behind it, and the end.
func (c *raw) partsWith(stream uint32) {
	c.t.Helper()
	var said []string
	for len(said) < 2 {
		said = append(said, c.outcome(stream))
	}
	if slices.Sort(said); !slices.Equal(said, []string{"goaway 0", "status 200"}) {
		c.t.Errorf("stream %d ended with %q", stream, said)
	}
	c.ends()
}
