package gateway_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lxzan/gws"
)

// wsCase is what a client sends after the handshake, and what a conforming echo server says to it (RFC 6455, RFC 7692).
type wsCase struct {
	name    string
	pieces  [][]byte // each written by itself
	echo    []wsFrame
	refused bool // the server ends the connection: with a close frame of status 1002 or 1007 if it says why
}

type wsFrame struct {
	first   byte
	payload []byte
}

var wsKey = []byte{0x37, 0xfa, 0x21, 0x3d}

func masked(first byte, payload []byte) []byte { return frame(first, payload, wsKey) }

// chopped cuts bytes into pieces of n.
func chopped(b []byte, n int) (pieces [][]byte) {
	for len(b) > n {
		pieces, b = append(pieces, b[:n]), b[n:]
	}
	return append(pieces, b)
}

// wsCases is a set along the lines of the Autobahn test suite's: framing, pings, reserved bits and opcodes, fragments, UTF-8, closing, size.
func wsCases() (cases []wsCase) {
	add := func(name string, pieces [][]byte, echo ...wsFrame) {
		cases = append(cases, wsCase{name: name, pieces: pieces, echo: echo})
	}
	refuse := func(name string, frames ...[]byte) {
		cases = append(cases, wsCase{name: name, pieces: frames, refused: true})
	}
	one := func(b []byte) [][]byte { return [][]byte{b} }
	for _, op := range []byte{opText, opBin} {
		for _, n := range []int{0, 1, 125, 126, 127, 128, 65535, 65536, 1 << 20} {
			text := bytes.Repeat([]byte("*"), n)
			add(fmt.Sprintf("framing/op %d of %d bytes", op, n), one(masked(fin|op, text)), wsFrame{fin | op, text})
		}
		long := bytes.Repeat([]byte("#"), 65536)
		add(fmt.Sprintf("framing/op %d in pieces of 997 bytes", op), chopped(masked(fin|op, long), 997), wsFrame{fin | op, long})
		add(fmt.Sprintf("framing/op %d byte by byte", op), chopped(masked(fin|op, []byte("slowly")), 1), wsFrame{fin | op, []byte("slowly")})
	}
	for _, n := range []int{0, 5, 125} {
		text := bytes.Repeat([]byte{0xfe}, n)
		add(fmt.Sprintf("pings/of %d bytes", n), one(masked(fin|opPing, text)), wsFrame{fin | opPong, text})
	}
	add("pings/byte by byte", chopped(masked(fin|opPing, []byte("hello")), 1), wsFrame{fin | opPong, []byte("hello")})
	add("pings/a pong that nobody asked for", [][]byte{masked(fin|opPong, []byte("x")), masked(fin|opPing, []byte("y"))}, wsFrame{fin | opPong, []byte("y")})
	var ten []wsFrame
	var tenSent []byte
	for i := range 10 {
		text := fmt.Appendf(nil, "ping %d", i)
		ten, tenSent = append(ten, wsFrame{fin | opPong, text}), append(tenSent, masked(fin|opPing, text)...)
	}
	add("pings/ten at once", one(tenSent), ten...)
	refuse("pings/of 126 bytes", masked(fin|opPing, make([]byte, 126)))
	refuse("pings/in fragments", masked(opPing, []byte("a")), masked(fin|opMore, []byte("b")))
	for _, rsv := range []byte{0x10, 0x20, 0x30} {
		refuse(fmt.Sprintf("reserved bits/%#x", rsv), masked(fin|rsv|opText, []byte("x")))
	}
	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		refuse(fmt.Sprintf("reserved opcodes/%d", op), masked(fin|op, nil))
	}
	add("fragments/two", [][]byte{masked(opText, []byte("frag")), masked(fin|opMore, []byte("ments"))}, wsFrame{fin | opText, []byte("fragments")})
	add("fragments/many of one byte", one(manyFragments(200)), wsFrame{fin | opBin, bytes.Repeat([]byte("m"), 200)})
	add("fragments/a ping between", [][]byte{masked(opText, []byte("frag")), masked(fin|opPing, []byte("p")), masked(fin|opMore, []byte("ments"))},
		wsFrame{fin | opPong, []byte("p")}, wsFrame{fin | opText, []byte("fragments")})
	add("fragments/empty ones", [][]byte{masked(opText, nil), masked(opMore, nil), masked(fin|opMore, nil)}, wsFrame{fin | opText, nil})
	refuse("fragments/one of nothing", masked(fin|opMore, []byte("x")))
	refuse("fragments/a message inside another", masked(opText, []byte("a")), masked(fin|opText, []byte("b")))
	for _, text := range []string{"Hello-µ@ßöäüàá-UTF-8!!", "κόσμε", "\u0000", "\u07ff", "\uffff", "\U0010ffff", "日本語"} {
		add(fmt.Sprintf("UTF-8/%q", text), one(masked(fin|opText, []byte(text))), wsFrame{fin | opText, []byte(text)})
		half := len(text) / 2
		add(fmt.Sprintf("UTF-8/%q in fragments", text), [][]byte{masked(opText, []byte(text)[:half]), masked(fin|opMore, []byte(text)[half:])}, wsFrame{fin | opText, []byte(text)})
	}
	for _, text := range []string{"\xce\xba\xed\xa0\x80edited", "\xf4\x90\x80\x80", "\x80", "\xc0\xaf", "\xff", "\xe2\x82"} {
		if utf8.ValidString(text) {
			panic(text)
		}
		refuse(fmt.Sprintf("UTF-8/%q is none", text), masked(fin|opText, []byte(text)))
	}
	for _, code := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		why := append(binary.BigEndian.AppendUint16(nil, code), "over"...)
		cases = append(cases, wsCase{name: fmt.Sprintf("closing/status %d", code), pieces: one(masked(fin|opClose, why)), echo: []wsFrame{{fin | opClose, nil}}})
	}
	cases = append(cases, wsCase{name: "closing/without a status", pieces: one(masked(fin|opClose, nil)), echo: []wsFrame{{fin | opClose, nil}}})
	refuse("closing/one byte", masked(fin|opClose, []byte{3}))
	refuse("closing/of 126 bytes", masked(fin|opClose, make([]byte, 126)))
	for _, n := range []int{4 << 20, 16 << 20} {
		large := bytes.Repeat([]byte("L"), n)
		add(fmt.Sprintf("size/%d MiB", n>>20), chopped(masked(fin|opBin, large), 64<<10), wsFrame{fin | opBin, large})
	}
	return cases
}

// manyFragments is a binary message of n fragments.
func manyFragments(n int) (out []byte) {
	for i := range n {
		first := byte(opMore)
		if i == 0 {
			first = opBin
		}
		if i == n-1 {
			first |= fin
		}
		out = append(out, masked(first, []byte("m"))...)
	}
	return out
}

// wsEcho is an echo server of a library that passes the Autobahn suite.
type wsEcho struct{ gws.BuiltinEventHandler }

func (wsEcho) OnPing(c *gws.Conn, payload []byte) { _ = c.WritePong(payload) }

func (wsEcho) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	_ = c.WriteMessage(m.Opcode, m.Bytes())
}

func wsServer(t *testing.T) *httptest.Server {
	up := gws.NewUpgrader(wsEcho{}, &gws.ServerOption{CheckUtf8Enabled: true, ReadMaxPayloadSize: 32 << 20, WriteMaxPayloadSize: 32 << 20,
		PermessageDeflate: gws.PermessageDeflate{Enabled: true, ServerContextTakeover: true, ClientContextTakeover: true,
			ServerMaxWindowBits: 15, ClientMaxWindowBits: 15, Threshold: 1}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := up.Upgrade(w, r); err == nil {
			c.ReadLoop()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// directly opens a WebSocket to addr, without a gateway between.
func directly(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	send(t, nc, handshake+"\r\n")
	r := bufio.NewReader(nc)
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("handshake: %q, %v", head, err)
	}
	return nc, r
}

// play sends a case over a WebSocket that was opened and returns the frames that come back, to the end of the connection.
func (c *wsCase) play(t *testing.T, nc net.Conn, r *bufio.Reader) (frames []wsFrame) {
	t.Helper()
	defer nc.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, piece := range c.pieces {
			if _, err := nc.Write(piece); err != nil {
				return // the server has ended the connection before
			}
		}
	}()
	defer func() { <-sent }()
	for {
		first, payload, masked, err := readFrame(r)
		if err != nil {
			return frames
		}
		if masked {
			t.Error("a server's frame is masked")
		}
		frames = append(frames, wsFrame{first, payload})
		if len(frames) == len(c.echo) && !c.refused && first != fin|opClose {
			_, _ = nc.Write(goodbye(1000))
		}
	}
}

func goodbye(code uint16) []byte {
	return masked(fin|opClose, binary.BigEndian.AppendUint16(nil, code))
}

// TestConformanceOfWebSockets has each case judged twice: what comes back through the gateway is what RFC 6455 wants, and it is what the echo
// server says to the same client without a gateway between.
func TestConformanceOfWebSockets(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		back := wsServer(t)
		h := open(t, sockets(back.URL))
		direct := strings.TrimPrefix(back.URL, "http://")
		for _, c := range wsCases() {
			t.Run(c.name, func(t *testing.T) {
				nc, r := h.socket()
				got := c.play(t, nc, r)
				nc, r = directly(t, direct)
				want := c.play(t, nc, r)
				c.judge(t, got)
				if len(got) != len(want) {
					t.Fatalf("%d frames, without the gateway %d", len(got), len(want))
				}
				for i := range got {
					if got[i].first != want[i].first || !bytes.Equal(got[i].payload, want[i].payload) {
						t.Errorf("frame %d is %#x of %d bytes, without the gateway %#x of %d", i, got[i].first, len(got[i].payload), want[i].first, len(want[i].payload))
					}
				}
			})
		}
	})
}

func (c *wsCase) judge(t *testing.T, got []wsFrame) {
	t.Helper()
	if c.refused {
		for _, f := range got {
			if f.first != fin|opClose {
				t.Errorf("answered with frame %#x of %d bytes", f.first, len(f.payload))
			} else if code := binary.BigEndian.Uint16(append(f.payload, 0, 0)); code != 1002 && code != 1007 {
				t.Errorf("closed with status %d", code)
			}
		}
		return
	}
	if len(got) < len(c.echo) {
		t.Fatalf("%d frames, want %d", len(got), len(c.echo))
	}
	for i, want := range c.echo {
		if got[i].first != want.first || want.first != fin|opClose && !bytes.Equal(got[i].payload, want.payload) {
			t.Errorf("frame %d is %#x of %d bytes, want %#x of %d", i, got[i].first, len(got[i].payload), want.first, len(want.payload))
		}
	}
}

// TestConformanceOfCompressedWebSockets has a client that offers permessage-deflate (RFC 7692): the offer, the answer and compressed messages
// pass as they are, those whose window reaches back to earlier ones too.
func TestConformanceOfCompressedWebSockets(t *testing.T) {
	h := open(t, sockets(wsServer(t).URL))
	nc, r := h.dial()
	send(t, nc, handshake+"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
	head, err := readHead(r)
	if err != nil || !strings.Contains(strings.ToLower(head), "sec-websocket-extensions: permessage-deflate") {
		t.Fatalf("handshake: %q, %v", head, err)
	}
	var window bytes.Buffer
	w, err := flate.NewWriter(&window, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	in := &wsInflater{}
	for i := range 100 {
		message := fmt.Appendf(nil, "message %d: %s", i, strings.Repeat("again and again ", i*40))
		window.Reset()
		_, _ = w.Write(message)
		_ = w.Flush()
		data := bytes.TrimSuffix(window.Bytes(), []byte{0, 0, 0xff, 0xff})
		if _, err := nc.Write(masked(fin|rsv1|opText, data)); err != nil {
			t.Fatal(err)
		}
		first, payload, _, err := readFrame(r)
		if err != nil || first&0x0f != opText {
			t.Fatalf("message %d: frame %#x %q, %v, after %q", i, first, payload, err, head)
		}
		if first&rsv1 != 0 {
			payload = in.message(t, payload)
		}
		if !bytes.Equal(payload, message) {
			t.Fatalf("message %d came back as %d bytes, want %d", i, len(payload), len(message))
		}
	}
}

// wsInflater unpacks messages whose window goes on from one to the next.
type wsInflater struct{ said []byte }

func (in *wsInflater) message(t *testing.T, data []byte) []byte {
	t.Helper()
	z := flate.NewReaderDict(io.MultiReader(bytes.NewReader(data), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff")), in.said[max(0, len(in.said)-32<<10):])
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	in.said = append(in.said, out...)
	return out
}
