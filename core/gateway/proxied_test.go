package gateway_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/moongate/moongate/core/proxyproto"
)

func proxied(networks string) string {
	return "[[listener]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = [" + networks + "]\n"
}

var said = proxyproto.Header{Source: netip.MustParseAddrPort("192.0.2.7:4711"), Destination: netip.MustParseAddrPort("198.51.100.1:443")}

func TestAProxySaysWhoTheClientIs(t *testing.T) {
	for name, head := range map[string]string{
		"v1": string(said.Append(nil, proxyproto.V1)), "v2": string(said.Append(nil, proxyproto.V2)), "v1 with another": "PROXY TCP6 2001:db8::7 2001:db8::8 1 2\r\n",
		"v1 unknown": "PROXY UNKNOWN\r\n", "v2 local": string(proxyproto.Header{}.Append(nil, proxyproto.V2)),
	} {
		t.Run(name, func(t *testing.T) {
			url, heads := recorder(t, ok)
			h := open(t, proxied(`"127.0.0.0/8"`)+route(url))
			nc, r := h.dial()
			for i := range len(head) { // however it arrives
				send(t, nc, head[i:i+1])
			}
			for range 2 {
				send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
				if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
					t.Fatalf("%q, %v", head, err)
				}
				expect(t, r, "ok")
				want := map[string]string{"v1": "192.0.2.7", "v2": "192.0.2.7", "v1 with another": "2001:db8::7"}[name]
				if want == "" {
					want = "127.0.0.1"
				}
				if head := <-heads; !strings.Contains(head, "X-Forwarded-For: "+want+"\r\n") {
					t.Errorf("the upstream got\n%s", head)
				}
			}
		})
	}
}

func TestATrustedProxyWithoutAHeaderIsClosed(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, proxied(`"127.0.0.0/8"`)+"[http]\nhead_timeout = \"300ms\"\n"+route(url))
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: gw\r\n\r\n", "PROXY TCP4 192.0.2.7 192.0.2.8 1 99999\r\nGET / HTTP/1.1\r\nHost: gw\r\n\r\n", "PROXY TCP4 192.0.2.7", ""} {
		if got := h.raw(text); got != "" {
			t.Errorf("%q was answered with %q", text, got)
		}
	}
	select {
	case head := <-heads:
		t.Errorf("the upstream got %s", head)
	default:
	}
}

func TestAHeaderOfSomebodyElseIsNoRequest(t *testing.T) {
	url, heads := recorder(t, ok)
	for _, text := range []string{route(url), proxied(`"10.0.0.0/8"`) + route(url)} {
		h := open(t, text)
		for _, version := range []int{proxyproto.V1, proxyproto.V2} {
			got := h.raw(string(said.Append(nil, version)) + "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 400 ") || strings.Contains(got, "200 OK") {
				t.Errorf("version %d got %q", version, got)
			}
		}
		if got := h.raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("a client without one got %q", got)
		}
		<-heads
	}
}

func TestAHeaderStandsInFrontOfTLS(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, proxied(`"127.0.0.0/8"`)+"[listener.tls]\nself_signed = [\"gw.test\"]\n"+route(url))
	raw, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	send(t, raw, string(said.Append(nil, proxyproto.V2)))
	nc := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: "gw.test"})
	send(t, nc, "GET / HTTP/1.1\r\nHost: gw.test\r\n\r\n")
	if head, err := readHead(bufio.NewReader(nc)); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Fatalf("%q, %v", head, err)
	}
	if head := <-heads; !strings.Contains(head, "X-Forwarded-For: 192.0.2.7\r\n") || !strings.Contains(head, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestAReloadChangesWhoseHeadersAreWanted(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, proxied(`"127.0.0.0/8"`)+route(url))
	h.write("[[listener]]\naddress = \"127.0.0.1:0\"\n" + route(url))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := h.raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("got %q", got)
	}
}

func TestAnUpstreamIsToldWhoTheClientIs(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			type request struct {
				header proxyproto.Header
				head   string
				ends   error
			}
			got := make(chan request, 10)
			url := scripted(t, func(nc net.Conn) {
				said, err := proxyproto.Read(nc)
				if err != nil {
					got <- request{ends: err}
					return
				}
				r := bufio.NewReader(nc)
				head, _ := readHead(r)
				_, _ = io.WriteString(nc, ok)
				_, err = r.ReadByte()
				got <- request{said, head, err}
			})
			h := open(t, "[[upstream]]\nname = \"u\"\nproxy_protocol = \""+version+"\"\nendpoints = [\""+url+"\"]\n"+route("u"))
			nc, r := h.dial()
			for range 2 {
				send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
				if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
					t.Fatalf("%q, %v", head, err)
				}
				expect(t, r, "ok")
				q := <-got
				if q.header.Source.String() != nc.LocalAddr().String() || q.header.Destination.String() != h.addr || !strings.HasPrefix(q.head, "GET / HTTP/1.1\r\n") || q.ends != io.EOF {
					t.Errorf("the upstream got %+v", q)
				}
			}
		})
	}
}

func TestAnUpstreamIsToldTheClientBehindProxies(t *testing.T) {
	got := make(chan proxyproto.Header, 1)
	url := scripted(t, func(nc net.Conn) {
		said, _ := proxyproto.Read(nc)
		got <- said
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = io.WriteString(nc, ok)
	})
	h := open(t, "[http]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[[upstream]]\nname = \"u\"\nproxy_protocol = \"v1\"\nendpoints = [\""+url+"\"]\n"+route("u"))
	h.raw("GET / HTTP/1.1\r\nHost: gw\r\nX-Forwarded-For: 2001:db8::7\r\nConnection: close\r\n\r\n")
	if said := <-got; said.Source.String() != "[2001:db8::7]:0" {
		t.Errorf("the upstream was told %v", said)
	}
}
