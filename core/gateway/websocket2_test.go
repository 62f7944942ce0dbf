package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/server/h2test"
)

// opener is what open is.
type opener func(t testing.TB, text string, change ...func(*gateway.Options)) *house

// overBoth runs a test whose sockets come over HTTP/1.1, and with those over HTTP/2.
func overBoth(t *testing.T, f func(t *testing.T, open opener)) {
	t.Run("HTTP1", func(t *testing.T) { f(t, open) })
	t.Run("HTTP2", func(t *testing.T) {
		f(t, func(t testing.TB, text string, change ...func(*gateway.Options)) *house {
			h := open(t, text, change...)
			h.over2 = true
			return h
		})
	})
}

// dial2 opens a connection of HTTP/2 with prior knowledge.
func (h *house) dial2() *h2test.Conn {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := h2test.New(nc)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// closing is a WebSocket with its connection to itself: closing it closes that.
type closing struct {
	*h2test.Stream
	conn *h2test.Conn
}

func (c closing) Close() error { return c.conn.Close() }

// socket2 opens a WebSocket through the gateway over HTTP/2.
func (h *house) socket2() (net.Conn, *bufio.Reader) {
	h.t.Helper()
	c := h.dial2()
	s := h.connect(c)
	return closing{s, c}, bufio.NewReader(patiently{s})
}

// connect opens one more of a connection.
func (h *house) connect(c *h2test.Conn, lines ...string) *h2test.Stream {
	h.t.Helper()
	s, err := c.Connect("/chat?room=1", lines...)
	if err != nil || s.Status() != 200 {
		h.t.Fatalf("handshake: %v, status %d", err, s.Status())
	}
	_ = s.SetReadDeadline(time.Now().Add(patience))
	return s
}

func TestAWebSocketOverHTTP2IsOpenedEndToEnd(t *testing.T) {
	url, heads, _ := echoer(t)
	h := open(t, sockets(url))
	c := h.dial2()
	if c.Setting(http2.SettingEnableConnectProtocol) != 1 {
		t.Fatal("the gateway does not say that it takes extended CONNECT")
	}
	s := h.connect(c, "sec-websocket-protocol", "chat, superchat", "sec-websocket-extensions", "permessage-deflate; client_max_window_bits", "x-one", "1", "x-user-id", "evil",
		"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
	for name, want := range map[string]string{"Sec-Websocket-Protocol": "chat", "Sec-Websocket-Extensions": "permessage-deflate", "Sec-Websocket-Accept": "", "Upgrade": "",
		"Connection": "", "Content-Type": "", "Content-Length": ""} {
		if got := s.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	head := <-heads
	for _, want := range []string{"GET /chat?room=1 HTTP/1.1\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Protocol: chat, superchat\r\n",
		"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Host: gw\r\n", "Via: 2.0 moongate\r\n", "X-One: 1\r\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("the upstream did not get %q:\n%s", want, head)
		}
	}
	for _, never := range []string{"evil", "rotocol: websocket", "dGhlIHNhbXBsZSBub25jZQ=="} {
		if strings.Contains(head, never) {
			t.Errorf("the upstream got %q:\n%s", never, head)
		}
	}
	if strings.Count(head, "Connection:") != 1 || strings.Count(head, "Upgrade:") != 1 || strings.Count(head, "Sec-WebSocket-Key:") != 1 {
		t.Errorf("the upstream got\n%s", head)
	}
	h.connect(c)
	if other := <-heads; acceptFor(other) == acceptFor(head) {
		t.Error("two handshakes have the same key")
	}
}

func TestOnlyAllowedAndWellFormedHandshakesOverHTTP2AreOffered(t *testing.T) {
	const webSocket = "[[upstream]]\nname = \"u\"\nendpoints = [\"%s\"]\n[[route]]\nname = \"all\"\nupstream = \"u\"\nupgrade = [\"websocket\"]\n"
	usual := []string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/chat", ":authority", "gw", "sec-websocket-version", "13"}
	swap := func(name, value string) []string {
		lines := slices.Clone(usual)
		for i := 0; i < len(lines); i += 2 {
			if lines[i] == name && value == "" {
				return slices.Delete(lines, i, i+2)
			} else if lines[i] == name {
				lines[i+1] = value
			}
		}
		return lines
	}
	for _, c := range []struct {
		name, config string
		lines        []string
		status       int
	}{
		{"as it should be", webSocket, usual, 200},
		{"capitals", webSocket, swap(":protocol", "WebSocket"), 200},
		{"route does not allow it", strings.Replace(webSocket, "upgrade", "# upgrade", 1), usual, 403},
		{"upstream of HTTP/2", strings.Replace(webSocket, "[[route]]", "protocol = \"h2c\"\n[[route]]", 1), usual, 403},
		{"no route", strings.Replace(webSocket, "upstream = \"u\"", "upstream = \"u\"\npath = \"/other\"", 1), usual, 404},
		{"turned off", "[http]\nhttp2_websockets = false\n" + webSocket, usual, 501},
		{"another version", webSocket, swap("sec-websocket-version", "8"), 426},
		{"no version", webSocket, swap("sec-websocket-version", ""), 426},
		{"another protocol", webSocket, swap(":protocol", "connect-udp"), 501},
		{"by GET", webSocket, swap(":method", "GET"), 400},
		{"plain CONNECT", webSocket, []string{":method", "CONNECT", ":authority", "gw:443"}, 501},
		{"a length", webSocket, append(slices.Clone(usual), "content-length", "5"), 400},
		{"dot segments", webSocket, swap(":path", "/a/../b"), 400},
		{"of gRPC's kind", strings.Replace(webSocket, "upgrade", "# upgrade", 1), append(slices.Clone(usual), "content-type", "application/grpc"), 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, heads, _ := echoer(t)
			h := open(t, fmt.Sprintf(c.config, url))
			conn := h.dial2()
			for range 2 { // the connection stays
				s, err := conn.Open(false, c.lines...)
				if err == nil {
					err = s.Wait()
				}
				if err != nil || s.Status() != c.status {
					t.Fatalf("status %d, %v", s.Status(), err)
				}
				if c.status == 426 && s.Header().Get("Sec-Websocket-Version") != "13" {
					t.Error("426 does not say which version")
				}
				if c.status == 200 {
					<-heads
					_, _ = s.Write(frame(fin|opText, []byte("hello"), []byte{1, 2, 3, 4}))
					wantFrame(t, bufio.NewReader(s), fin|opText, []byte("hello"))
				} else if body, err := io.ReadAll(s); err != nil || !strings.Contains(string(body), fmt.Sprintf(`"code":%d`, c.status)) {
					t.Errorf("body %q, %v", body, err)
				}
			}
			if len(heads) > 0 {
				t.Errorf("the upstream was asked: %s", <-heads)
			}
			if off := strings.Contains(c.config, "http2_websockets"); (conn.Setting(http2.SettingEnableConnectProtocol) == 0) != off {
				t.Error("the settings say something else")
			}
		})
	}
}

func TestAnswersThatOpenNothingComeToAClientOfHTTP2AsTheyAreOrAs502(t *testing.T) {
	const good = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	for _, c := range []struct {
		name, answer string
		status       int
		body         string
	}{
		{"refused", "HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Why: secret\r\n\r\nnot it", 403, "not it"},
		{"redirected", "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", 302, ""},
		{"a page", ok, 502, `"no websocket was opened"`},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", 502, `"no websocket was opened"`},
		{"an accept for another key", good, 502, `"code":502`},
		{"another protocol", strings.Replace(good, "websocket", "h2c", 1), 502, `"code":502`},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := recorder(t, c.answer)
			h := open(t, sockets(url))
			conn := h.dial2()
			for range 7 { // more than would eject an endpoint
				s, err := conn.Connect("/chat")
				if err != nil || s.Status() != c.status {
					t.Fatalf("status %d, %v", s.Status(), err)
				}
				if body, err := io.ReadAll(s); err != nil || !strings.Contains(string(body), c.body) {
					t.Errorf("body %q, %v", body, err)
				}
				if c.name == "refused" && s.Header().Get("X-Why") != "secret" {
					t.Error("the answer lost a line")
				}
			}
		})
	}
}

func TestAPageDoesNotEjectAnEndpointThatOpensNoWebSocket(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, sockets(url))
	conn := h.dial2()
	for range 20 {
		if s, err := conn.Connect("/chat"); err != nil || s.Status() != 502 {
			t.Fatalf("status %d, %v", s.Status(), err)
		}
	}
	if got := h.body("/"); got != "ok" {
		t.Errorf("an ordinary request gets %q", got)
	}
}

func TestAClientOfHTTP2ThatLeavesClosesTheUpstreamsSocket(t *testing.T) {
	for name, leave := range map[string]func(*h2test.Conn, *h2test.Stream){
		"reset":       func(_ *h2test.Conn, s *h2test.Stream) { _ = s.Reset(http2.ErrCodeCancel) },
		"end":         func(_ *h2test.Conn, s *h2test.Stream) { _ = s.CloseWrite() },
		"connection":  func(c *h2test.Conn, _ *h2test.Stream) { c.Close() },
		"end, reset":  func(_ *h2test.Conn, s *h2test.Stream) { _, _ = s.CloseWrite(), s.Reset(http2.ErrCodeCancel) },
		"reset early": func(_ *h2test.Conn, s *h2test.Stream) { _, _ = s.Write([]byte{0x81, 0xff, 0}); _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			url, _, gone := echoer(t)
			h := open(t, sockets(url))
			c := h.dial2()
			s := h.connect(c)
			leave(c, s)
			select {
			case <-gone:
			case <-time.After(patience):
				t.Error("the upstream was not told")
			}
			h.wantMetric(`moongate_upgrade_open_connections{route="all"} 0`)
		})
	}
}

// TestAResetReachesAnUpstreamThatReadsNothing has the gateway wait for the upstream when the client leaves.
func TestAResetReachesAnUpstreamThatReadsNothing(t *testing.T) {
	full, gone := make(chan struct{}), make(chan error, 1)
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReaderSize(nc, 16)
		_, _ = accepts(nc, r, "")
		<-full
		_ = nc.SetWriteDeadline(time.Now().Add(patience))
		for {
			if _, err := nc.Write(make([]byte, 1<<16)); err != nil {
				gone <- err
				return
			}
		}
	})
	h := open(t, sockets(url))
	s := h.connect(h.dial2())
	var sent atomic.Int64
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for {
			n, err := s.Write(make([]byte, 4<<10))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}()
	for last := int64(-1); ; <-time.After(200 * time.Millisecond) { // until nothing moves any more
		if now := sent.Load(); now > 0 && now == last {
			break
		} else {
			last = now
		}
	}
	if n := sent.Load(); n > 32<<20 {
		t.Errorf("%d bytes were taken for an upstream that reads nothing", n)
	}
	_ = s.Reset(http2.ErrCodeCancel)
	close(full)
	if err := <-gone; errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	<-writing
	h.wantMetric(`moongate_upgrade_open_connections{route="all"} 0`)
}

func TestAnUpstreamThatDiesResetsTheStream(t *testing.T) {
	for name, die := range map[string]func(net.Conn){
		"reset":                 func(nc net.Conn) { _ = nc.(*net.TCPConn).SetLinger(0) },
		"in the middle of text": func(nc net.Conn) { _, _ = nc.Write([]byte{0x81, 100, 'h', 'a', 'l', 'f'}) },
	} {
		t.Run(name, func(t *testing.T) {
			die1 := make(chan struct{})
			url := scripted(t, func(nc net.Conn) {
				_, _ = accepts(nc, bufio.NewReader(nc), "")
				<-die1
				die(nc)
			})
			h := open(t, sockets(url))
			c := h.dial2()
			s := h.connect(c)
			close(die1)
			if _, err := io.ReadAll(s); !isReset(err) {
				t.Errorf("the stream ended with %v", err)
			}
			if other, err := c.Open(true, ":method", "GET", ":scheme", "http", ":path", "/a/../b", ":authority", "gw"); err != nil || other.Wait() != nil || other.Status() != 400 {
				t.Error("the connection went with it")
			}
		})
	}
}

func isReset(err error) bool {
	_, ok := errors.AsType[*h2test.ResetError](err)
	return ok
}

func TestACloseOfEitherSideEndsTheStreamInGoodOrder(t *testing.T) {
	t.Run("the upstream's", func(t *testing.T) {
		answered := make(chan error, 1)
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			_, _ = accepts(nc, r, "")
			_, _ = nc.Write(frame(fin|opClose, []byte{3, 232}, nil))
			_ = nc.(*net.TCPConn).CloseWrite() // before the client has had its say
			first, _, _, err := readFrame(r)
			if err == nil && first != fin|opClose {
				err = fmt.Errorf("frame %#x", first)
			}
			answered <- err
		})
		h := open(t, sockets(url))
		s := h.connect(h.dial2())
		r := bufio.NewReader(s)
		wantFrame(t, r, fin|opClose, []byte{3, 232})
		_, _ = s.Write(frame(fin|opClose, []byte{3, 232}, []byte{1, 2, 3, 4}))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("got %v behind the close", err)
		}
		if err := <-answered; err != nil {
			t.Errorf("the upstream got %v", err)
		}
	})
	t.Run("the client's", func(t *testing.T) {
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			_, _ = accepts(nc, r, "")
			_, payload, _, _ := readFrame(r)
			_, _ = nc.Write(frame(fin|opClose, payload, nil))
		})
		h := open(t, sockets(url))
		s := h.connect(h.dial2())
		_, _ = s.Write(frame(fin|opClose, append([]byte{0x0f, 0xa1}, "app says so"...), []byte{1, 2, 3, 4}))
		r := bufio.NewReader(s)
		wantFrame(t, r, fin|opClose, append([]byte{0x0f, 0xa1}, "app says so"...))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("got %v behind the close", err)
		}
		h.wantMetric(`moongate_upgrade_open_connections{route="all"} 0`)
	})
}

func TestWebSocketsOfOneConnectionAreBoundedAndApart(t *testing.T) {
	url, _, _ := echoer(t)
	h := open(t, sockets(url))
	c := h.dial2()
	most := int(c.Setting(http2.SettingMaxConcurrentStreams))
	if most != 128 {
		t.Fatalf("%d streams", most)
	}
	var all []*h2test.Stream
	for range most {
		all = append(all, h.connect(c))
	}
	if s, err := c.Connect("/chat"); !isReset(err) {
		t.Errorf("one too many: status %d, %v", s.Status(), err)
	}
	h.wantMetric(fmt.Sprintf(`moongate_upgrade_open_connections{route="all"} %d`, most))
	_ = all[0].Reset(http2.ErrCodeCancel)
	h.wantMetric(fmt.Sprintf(`moongate_upgrade_open_connections{route="all"} %d`, most-1))
	for i, s := range all[1:] {
		text := fmt.Appendf(nil, "socket %d", i)
		_, _ = s.Write(frame(fin|opText, text, []byte{1, 2, 3, 4}))
		wantFrame(t, bufio.NewReader(s), fin|opText, text)
	}
	h.connect(c)
}

func TestASocketOverHTTP2PassesTheStagesAndIsLoggedOnceAtItsEnd(t *testing.T) {
	url, _, _ := echoer(t)
	stage := logging{make(chan string, 10)}
	h := open(t, sockets(url), func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) { return gateway.Built{Pipeline: stage}, nil }
	})
	for name, leave := range map[string]func(*h2test.Stream) error{"reset": (*h2test.Stream).Close, "end": (*h2test.Stream).CloseWrite} {
		s := h.connect(h.dial2())
		if got := s.Header().Get("X-Passed"); got != "response stage" {
			t.Fatalf("X-Passed is %q", got)
		}
		_, _ = s.Write(frame(fin|opText, []byte("12345"), []byte{1, 2, 3, 4}))
		wantFrame(t, bufio.NewReader(s), fin|opText, []byte("12345"))
		select {
		case line := <-stage.ended:
			t.Errorf("logged while open: %s", line)
		default:
		}
		_ = leave(s)
		if got := <-stage.ended; got != "101 upstream in 11 out 7 <nil>" {
			t.Errorf("%s: logged %q", name, got)
		}
	}
}

func TestAResponseFunctionMayTakeTheSwitchOverHTTP2Back(t *testing.T) {
	url, _, gone := echoer(t)
	stage := refusing{logging{make(chan string, 10)}}
	h := open(t, sockets(url), func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) { return gateway.Built{Pipeline: stage}, nil }
	})
	c := h.dial2()
	for range 2 {
		s, err := c.Connect("/chat")
		if err != nil || s.Status() != 403 {
			t.Fatalf("status %d, %v", s.Status(), err)
		}
		if got := <-stage.ended; !strings.HasPrefix(got, "403 ") {
			t.Errorf("logged %s", got)
		}
		if err := <-gone; err == nil {
			t.Error("the upstream's socket is still open")
		}
	}
}

func TestAChangeOfLimitsLeavesSocketsOverHTTP2(t *testing.T) {
	url, _, _ := echoer(t)
	h := open(t, sockets(url))
	c := h.dial2()
	s := h.connect(c)
	h.write("[http]\nbody_idle = \"7s\"\nhttp2_websockets = false\n" + sockets(url))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is asked to end", c.GoingAway)
	_, _ = s.Write(frame(fin|opText, []byte("still here"), []byte{1, 2, 3, 4}))
	wantFrame(t, bufio.NewReader(s), fin|opText, []byte("still here"))
	if h.dial2().Setting(http2.SettingEnableConnectProtocol) != 0 {
		t.Error("a new connection is told of extended CONNECT")
	}
}

func TestSocketsOverHTTP2WorkOverTLS(t *testing.T) {
	url, heads, gone := echoer(t)
	h := open(t, secureSockets(url, ""))
	raw, _ := h.dial()
	nc := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	c, err := h2test.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Setting(http2.SettingEnableConnectProtocol) != 1 {
		t.Error("the gateway does not say that it takes extended CONNECT")
	}
	s := h.connect(c)
	if head := <-heads; !strings.Contains(head, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("the upstream got %s", head)
	}
	r := bufio.NewReader(s)
	for _, payload := range [][]byte{[]byte("small"), bytes.Repeat([]byte("large "), 200_000), []byte("small again")} {
		go func() { _, _ = s.Write(frame(fin|opBin, payload, []byte{1, 2, 3, 4})) }()
		wantFrame(t, r, fin|opBin, payload)
	}
	_ = s.CloseWrite()
	if err := <-gone; err != io.EOF {
		t.Errorf("the upstream saw %v", err)
	}
}
