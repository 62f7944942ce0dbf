package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
)

// The opcodes of RFC 6455 section 5.2.
const (
	opMore  = 0x0
	opText  = 0x1
	opBin   = 0x2
	opClose = 0x8
	opPing  = 0x9
	opPong  = 0xa
	fin     = 0x80
	rsv1    = 0x40
)

const handshake = "GET /chat?room=1 HTTP/1.1\r\nHost: gw\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// frame writes one frame; with a key it is masked.
func frame(first byte, payload []byte, key []byte) []byte {
	out := []byte{first}
	mask := byte(0)
	if key != nil {
		mask = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		out = append(out, mask|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, mask|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, mask|127), uint64(n))
	}
	if key == nil {
		return append(out, payload...)
	}
	out = append(out, key...)
	for i, c := range payload {
		out = append(out, c^key[i&3])
	}
	return out
}

// readFrame reads one frame and unmasks it.
func readFrame(r *bufio.Reader) (first byte, payload []byte, masked bool, err error) {
	var head [2]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return
	}
	size := uint64(head[1] & 0x7f)
	var long [8]byte
	switch size {
	case 126:
		_, err = io.ReadFull(r, long[6:])
		size = binary.BigEndian.Uint64(long[:])
	case 127:
		_, err = io.ReadFull(r, long[:])
		size = binary.BigEndian.Uint64(long[:])
	}
	var key [4]byte
	if masked = head[1]&0x80 != 0; masked && err == nil {
		_, err = io.ReadFull(r, key[:])
	}
	if err != nil {
		return
	}
	payload = make([]byte, size)
	_, err = io.ReadFull(r, payload)
	for i := range payload {
		payload[i] ^= key[i&3]
	}
	return head[0], payload, masked, err
}

// accepts answers a handshake for its key and returns the head that asked.
func accepts(nc net.Conn, r *bufio.Reader, extra string) (string, error) {
	head, err := readHead(r)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n", acceptFor(head), extra)
	return head, err
}

func acceptFor(head string) string {
	_, key, _ := strings.Cut(head, "Sec-WebSocket-Key: ")
	key, _, _ = strings.Cut(key, "\r\n")
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// echoer is an upstream that sends every byte back as it came, after the handshake.
func echoer(t *testing.T) (url string, heads chan string, gone chan error) {
	heads, gone = make(chan string, 1000), make(chan error, 1000)
	return scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		head, err := accepts(nc, r, "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Extensions: permessage-deflate\r\n")
		if err != nil {
			return
		}
		heads <- head
		for {
			first, payload, masked, err := readFrame(r)
			if err != nil {
				gone <- err
				return
			}
			if !masked {
				gone <- fmt.Errorf("a client's frame was not masked")
				return
			}
			if _, err := nc.Write(frame(first, payload, nil)); err != nil {
				gone <- err
				return
			}
		}
	}), heads, gone
}

func sockets(upstream string) string { return route(upstream) + "upgrade = [\"websocket\"]\n" }

// socket opens a WebSocket through the gateway.
func (h *house) socket() (net.Conn, *bufio.Reader) {
	h.t.Helper()
	if h.over2 {
		return h.socket2()
	}
	nc, r := h.dial()
	send(h.t, nc, handshake+"\r\n")
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		h.t.Fatalf("handshake: %q, %v", head, err)
	}
	return nc, r
}

func wantFrame(t *testing.T, r *bufio.Reader, first byte, payload []byte) {
	t.Helper()
	got, data, _, err := readFrame(r)
	if err != nil || got != first || !bytes.Equal(data, payload) {
		t.Fatalf("got frame %#x of %d bytes (%v), want %#x of %d", got, len(data), err, first, len(payload))
	}
}

func TestAWebSocketIsOpenedEndToEnd(t *testing.T) {
	url, heads, _ := echoer(t)
	h := open(t, sockets(url))
	nc, r := h.dial()
	send(t, nc, handshake+"Sec-WebSocket-Protocol: chat, superchat\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nTE: trailers\r\n\r\n")
	answer, err := readHead(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HTTP/1.1 101 Switching Protocols\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
		"Sec-WebSocket-Protocol: chat\r\n", "Sec-WebSocket-Extensions: permessage-deflate\r\n"} {
		if !strings.Contains(answer, want) {
			t.Errorf("the client did not get %q:\n%s", want, answer)
		}
	}
	head := <-heads
	for _, want := range []string{"GET /chat?room=1 HTTP/1.1\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-WebSocket-Protocol: chat, superchat\r\n",
		"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n", "X-Forwarded-For: 127.0.0.1\r\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("the upstream did not get %q:\n%s", want, head)
		}
	}
	if strings.Count(head, "Connection:") != 1 {
		t.Errorf("the upstream got more than one Connection:\n%s", head)
	}
}

func TestFramesPassAsTheyAre(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, _ := echoer(t)
		h := open(t, sockets(url))
		nc, r := h.socket()
		key := []byte{0x12, 0x00, 0xff, 0x80}
		for _, c := range []struct {
			name    string
			first   byte
			payload []byte
		}{
			{"empty text", fin | opText, nil},
			{"text", fin | opText, []byte("Hello")},
			{"the longest short one", fin | opText, bytes.Repeat([]byte("x"), 125)},
			{"the shortest with 16 bits", fin | opBin, bytes.Repeat([]byte("x"), 126)},
			{"the longest with 16 bits", fin | opBin, bytes.Repeat([]byte{0, 1, 2, 255}, 1<<14)[:65535]},
			{"the shortest with 64 bits", fin | opBin, make([]byte, 65536)},
			{"first fragment", opText, []byte("frag")},
			{"ping between fragments", fin | opPing, []byte("are you there")},
			{"fragment in between", opMore, []byte("men")},
			{"last fragment", fin | opMore, []byte("ted")},
			{"pong unasked", fin | opPong, nil},
			{"compressed", fin | rsv1 | opText, []byte{0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00}},
			{"no UTF-8 in a text", fin | opText, []byte{0xff, 0xfe}},
			{"close with code and reason", fin | opClose, append([]byte{0x0f, 0xa1}, "app says so"...)},
		} {
			if _, err := nc.Write(frame(c.first, c.payload, key)); err != nil {
				t.Fatal(c.name, err)
			}
			got, data, masked, err := readFrame(r)
			if err != nil || got != c.first || masked || !bytes.Equal(data, c.payload) {
				t.Fatalf("%s: got %#x, %d bytes, masked %v (%v)", c.name, got, len(data), masked, err)
			}
		}
	})
}

func TestFramesPassByteForByte(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		first := make(chan []byte, 1)
		want := frame(fin|opText, []byte("masked as the client masked it"), []byte{1, 2, 3, 4})
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			if _, err := accepts(nc, r, ""); err == nil {
				raw := make([]byte, len(want))
				_, _ = io.ReadFull(r, raw)
				first <- raw
			}
		})
		h := open(t, sockets(url))
		nc, _ := h.socket()
		for i := range want {
			_, _ = nc.Write(want[i : i+1])
		}
		if got := <-first; !bytes.Equal(got, want) {
			t.Errorf("the upstream got %x, want %x", got, want)
		}
	})
}

func TestALargeMessagePassesBothWays(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, _ := echoer(t)
		h := open(t, sockets(url))
		nc, r := h.socket()
		payload := make([]byte, 16<<20)
		for i := range payload {
			payload[i] = byte(i * 7 >> 3)
		}
		go func() { _, _ = nc.Write(frame(fin|opBin, payload, []byte{9, 8, 7, 6})) }()
		first, got, _, err := readFrame(r)
		if err != nil || first != fin|opBin || sha256.Sum256(got) != sha256.Sum256(payload) {
			t.Errorf("got frame %#x of %d bytes, %v", first, len(got), err)
		}
	})
}

func TestBytesBehindTheHandshakeAreNotLost(t *testing.T) {
	got := make(chan []byte, 1)
	early := frame(fin|opText, []byte("early"), []byte{1, 2, 3, 4})
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		head, err := readHead(r)
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(nc, "HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n%s", acceptFor(head), frame(fin|opText, []byte("welcome"), nil))
		raw := make([]byte, len(early))
		_, _ = io.ReadFull(r, raw)
		got <- raw
	})
	h := open(t, sockets(url))
	nc, r := h.dial()
	send(t, nc, handshake+"\r\n"+string(early))
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	wantFrame(t, r, fin|opText, []byte("welcome"))
	if raw := <-got; !bytes.Equal(raw, early) {
		t.Errorf("the upstream got %x", raw)
	}
}

func TestOnlyAllowedAndWellFormedHandshakesAreOffered(t *testing.T) {
	swap := func(old, new string) string { return strings.Replace(handshake, old, new, 1) + "\r\n" }
	for _, c := range []struct {
		name, request, config string
		status                string
		offered, asked        bool
	}{
		{"route does not allow it", handshake + "\r\n", "", "200", false, true},
		{"by POST", swap("GET ", "POST "), "ws", "200", false, true},
		{"by HTTP/1.0", swap("HTTP/1.1", "HTTP/1.0"), "ws", "200", false, true},
		{"Connection does not say so", swap("keep-alive, Upgrade", "keep-alive"), "ws", "200", false, true},
		{"h2c", swap("Upgrade: websocket", "Upgrade: h2c"), "ws", "200", false, true},
		{"one of several", swap("Upgrade: websocket", "Upgrade: h2c, WebSocket"), "ws", "200", true, true},
		{"another version", swap("Version: 13", "Version: 8"), "ws", "426", false, false},
		{"two versions", swap("Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 8\r\n"), "ws", "400", false, false},
		{"no version", swap("Sec-WebSocket-Version: 13\r\n", ""), "ws", "426", false, false},
		{"no key", swap("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), "ws", "400", false, false},
		{"a short key", swap("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZQ=="), "ws", "400", false, false},
		{"a key that is no base64", swap("dGhl", "dG!l"), "ws", "400", false, false},
		{"a key with stray bits", swap("ZQ==", "ZR=="), "ws", "400", false, false},
		{"two keys", swap("Sec-WebSocket-Version", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version"), "ws", "400", false, false},
		{"a key that Connection takes away", swap("keep-alive, Upgrade", "Upgrade, Sec-WebSocket-Key"), "ws", "400", false, false},
		{"a body", swap("Host: gw\r\n", "Host: gw\r\nContent-Length: 5\r\n") + "hello", "ws", "400", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, heads := recorder(t, ok)
			text := route(url)
			if c.config == "ws" {
				text = sockets(url)
			}
			h := open(t, text)
			nc, r := h.dial()
			send(t, nc, c.request)
			head, err := readHead(r)
			if err != nil || !strings.Contains(head, " "+c.status+" ") {
				t.Fatalf("answer %q, %v", head, err)
			}
			if c.status == "426" && !strings.Contains(head, "Sec-WebSocket-Version: 13\r\n") {
				t.Errorf("426 does not say which version: %s", head)
			}
			select {
			case head := <-heads:
				if !c.asked || c.offered != strings.Contains(head, "Upgrade: websocket\r\n") || strings.Contains(head, "h2c") {
					t.Errorf("the upstream got %s", head)
				}
			default:
				if c.asked {
					t.Error("the upstream was not asked")
				}
			}
		})
	}
}

func TestARefusedHandshakeIsRelayedAsItIs(t *testing.T) {
	url, _ := recorder(t, "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 14\r\nContent-Length: 2\r\n\r\nno")
	h := open(t, sockets(url))
	nc, r := h.dial()
	for range 2 { // the connection stays
		send(t, nc, handshake+"\r\n")
		head, err := readHead(r)
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 426 Upgrade Required\r\n") || !strings.Contains(head, "Upgrade: websocket\r\n") || !strings.Contains(head, "Sec-WebSocket-Version: 14\r\n") {
			t.Fatalf("got %q, %v", head, err)
		}
		expect(t, r, "no")
	}
}

func TestAWrongSwitchIs502(t *testing.T) {
	const good = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	for _, c := range []struct{ name, request, answer string }{
		{"unasked", "GET / HTTP/1.1\r\nHost: gw\r\n\r\n", good},
		{"wrong accept", handshake + "\r\n", strings.Replace(good, "s3p", "s4p", 1)},
		{"no accept", handshake + "\r\n", strings.Replace(good, "Sec-WebSocket-Accept", "X", 1)},
		{"two accepts", handshake + "\r\n", strings.Replace(good, "Upgrade: websocket", "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 1)},
		{"another protocol", handshake + "\r\n", strings.Replace(good, "Upgrade: websocket", "Upgrade: h2c", 1)},
		{"no Upgrade", handshake + "\r\n", strings.Replace(good, "Upgrade: websocket\r\n", "", 1)},
		{"no Connection", handshake + "\r\n", strings.Replace(good, "Connection: Upgrade\r\n", "", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := recorder(t, c.answer)
			h := open(t, sockets(url))
			nc, r := h.dial()
			send(t, nc, c.request)
			if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 502 ") {
				t.Errorf("got %q, %v", head, err)
			}
		})
	}
}

func TestAClientThatLeavesClosesTheUpstreamsSocket(t *testing.T) {
	for _, reset := range []bool{false, true} {
		url, _, gone := echoer(t)
		h := open(t, sockets(url))
		nc, _ := h.socket()
		if reset {
			_ = nc.(*net.TCPConn).SetLinger(0)
		}
		nc.Close()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Errorf("reset %v: the upstream was not told", reset)
		}
	}
}

func TestAnUpstreamThatLeavesClosesTheClientsSocket(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			_, _ = accepts(nc, r, "")
			_, _ = nc.Write(frame(fin|opClose, []byte{3, 232}, nil))
		})
		h := open(t, sockets(url))
		_, r := h.socket()
		wantFrame(t, r, fin|opClose, []byte{3, 232})
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("got %v behind the end", err)
		}
	})
}

func TestAHalfClosedSocketStillDelivers(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			_, _ = accepts(nc, r, "")
			rest, _ := io.ReadAll(r)
			_, _ = nc.Write(frame(fin|opBin, rest, nil))
		})
		h := open(t, sockets(url))
		nc, r := h.socket()
		send(t, nc, "to the end")
		_ = nc.(interface{ CloseWrite() error }).CloseWrite()
		wantFrame(t, r, fin|opBin, []byte("to the end"))
	})
}

func TestASlowSocketHoldsTheSenderBack(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		var sent atomic.Int64
		stuck := make(chan struct{})
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			_, _ = accepts(nc, r, "")
			chunk := frame(fin|opBin, make([]byte, 64<<10), nil)
			for range 64 << 20 / len(chunk) {
				_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
				n, err := nc.Write(chunk)
				if sent.Add(int64(n)); err != nil {
					break
				}
			}
			close(stuck)
		})
		h := open(t, sockets(url))
		h.socket()
		if <-stuck; sent.Load() > 48<<20 {
			t.Errorf("%d bytes went to a client that reads nothing", sent.Load())
		}
	})
}

func TestASocketThatTakesNothingIsCut(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		gone := make(chan error, 1)
		url := scripted(t, func(nc net.Conn) {
			_, _ = accepts(nc, bufio.NewReader(nc), "")
			_ = nc.SetWriteDeadline(time.Now().Add(patience))
			for chunk := frame(fin|opBin, make([]byte, 64<<10), nil); ; {
				if _, err := nc.Write(chunk); err != nil {
					gone <- err
					return
				}
			}
		})
		h := open(t, sockets(url)+"[route.timeouts]\nupgrade_idle = \"300ms\"\n")
		h.socket()
		if err := <-gone; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the upstream waits for a client that takes nothing")
		}
		h.wantMetric(`moongate_upgrade_open_connections{route="all"} 0`)
	})
}

func TestAnIdleSocketIsClosedInGoodOrder(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, gone := echoer(t)
		h := open(t, sockets(url)+"[route.timeouts]\nupgrade_idle = \"150ms\"\n")
		began := time.Now()
		_, r := h.socket()
		wantFrame(t, r, fin|opClose, []byte{3, 233})
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("closed after %s", took)
		}
		if err := <-gone; err != io.EOF {
			t.Errorf("the upstream saw %v", err)
		}
	})
}

func TestASocketOutlivesTheLimitsOfRequests(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, _ := echoer(t)
		h := open(t, "[http]\nbody_idle = \"50ms\"\nidle_timeout = \"50ms\"\nhead_timeout = \"2s\"\n"+sockets(url)+"[route.timeouts]\ntotal = \"2s\"\nidle_read = \"50ms\"\nbody_total = \"50ms\"\n")
		nc, r := h.socket()
		<-time.After(2200 * time.Millisecond) // longer than each of them
		_, _ = nc.Write(frame(fin|opText, []byte("still here"), []byte{1, 2, 3, 4}))
		wantFrame(t, r, fin|opText, []byte("still here"))
	})
}

func TestReloadsKeepSocketsWhoseRouteTheyLeaveAlone(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, gone := echoer(t)
		other, _ := recorder(t, ok)
		text := "[http]\ndrain = \"2s\"\n" + sockets(url)
		extra := "[[route]]\nname = \"other\"\npath = \"/other\"\nupstream = \"" + other + "\"\n"
		h := open(t, text)
		nc, r := h.socket()
		say := func(what string) {
			t.Helper()
			_, _ = nc.Write(frame(fin|opText, []byte(what), []byte{1, 2, 3, 4}))
			wantFrame(t, r, fin|opText, []byte(what))
		}
		reload := func(text string) {
			t.Helper()
			h.write(text)
			if _, err := h.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		reload(text + extra)                                             // a route beside it
		reload(text + "[route.timeouts]\nfirst_byte = \"2s\"\n" + extra) // limits that no longer concern it
		<-time.After(2200 * time.Millisecond)                            // longer than the drain
		say("kept")
		began := time.Now()
		reload("[http]\ndrain = \"2s\"\n" + extra) // its own route gone
		say("draining")
		wantFrame(t, r, fin|opClose, []byte{3, 233})
		if took := time.Since(began); took < 1900*time.Millisecond {
			t.Errorf("drained for %s only", took)
		}
		_, _ = nc.Write(frame(fin|opClose, []byte{3, 233}, []byte{1, 2, 3, 4}))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("got %v behind the close", err)
		}
		if err := <-gone; err != io.EOF {
			t.Errorf("the upstream saw %v", err)
		}
	})
}

func TestASocketDrainsWhenItsEndpointGoes(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, _ := echoer(t)
		other, _, _ := echoer(t)
		text := func(endpoint string) string {
			return "[http]\ndrain = \"50ms\"\n[[upstream]]\nname = \"u\"\nendpoints = [\"" + endpoint + "\"]\n[[route]]\nname = \"r\"\nupgrade = \"websocket\"\nupstream = \"u\"\n"
		}
		h := open(t, text(url))
		_, r := h.socket()
		h.write(text(other))
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
		wantFrame(t, r, fin|opClose, []byte{3, 233})
	})
}

func TestACloseNeverCutsAMessageInHalf(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		half, whole := make(chan struct{}), make(chan struct{})
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			_, _ = accepts(nc, r, "")
			message := frame(fin|opText, bytes.Repeat([]byte("x"), 1000), nil)
			_, _ = nc.Write(message[:500])
			<-half
			_, _ = nc.Write(append(message[500:], frame(fin|opText, []byte("too late"), nil)...))
			if first, payload, masked, err := readFrame(r); first != fin|opClose || !bytes.Equal(payload, []byte{3, 233}) || !masked {
				t.Errorf("the upstream got frame %#x %x, masked %v, %v", first, payload, masked, err)
			}
			close(whole)
		})
		h := open(t, "[http]\ndrain = \"1ms\"\n"+sockets(url))
		_, r := h.socket()
		h.write("[http]\ndrain = \"1ms\"\n" + route(url))
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
		close(half)
		wantFrame(t, r, fin|opText, bytes.Repeat([]byte("x"), 1000))
		wantFrame(t, r, fin|opClose, []byte{3, 233})
		<-whole
	})
}

func TestSocketsDoNotUseThePoolUp(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, _ := echoer(t)
		h := open(t, "[[upstream]]\nname = \"u\"\nendpoints = [\""+url+"\"]\n[upstream.pool]\nconnections = 2\nwait = \"10ms\"\n[[route]]\nname = \"r\"\nupgrade = [\"websocket\"]\nupstream = \"u\"\n")
		for range 10 {
			h.socket()
		}
	})
}

func TestAScrapeTellsOfSockets(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, gone := echoer(t)
		h := open(t, sockets(url))
		nc, _ := h.socket()
		h.socket()
		h.wantMetric(`moongate_upgrade_open_connections{route="all"} 2`)
		nc.Close()
		<-gone
		h.wantMetric(`moongate_upgrade_open_connections{route="all"} 1`)
		h.wantMetric(`moongate_upgrade_connections_total{route="all"} 2`)
		h.wantMetric(`moongate_http_requests_total{class="1xx",route="all",upstream="` + url + `"} 1`)
	})
}

// wantMetric waits for a line of a scrape.
func (h *house) wantMetric(line string) {
	h.t.Helper()
	var text string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		w := httptest.NewRecorder()
		h.counts.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if text = w.Body.String(); strings.Contains(text, line+"\n") {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	h.t.Errorf("no %s in\n%s", line, text)
}

// logging is a pipeline whose one stage notes how exchanges ended.
type logging struct{ ended chan string }

func (l logging) Stages(*core.Route) []core.Stage             { return []core.Stage{l} }
func (l logging) Name() string                                { return "log" }
func (l logging) Request(*core.Exchange) (*core.Reply, error) { return nil, nil }
func (l logging) Response(x *core.Exchange) error {
	x.Response.Header.Set("X-Passed", "response stage")
	return nil
}
func (l logging) Log(x *core.Exchange) {
	l.ended <- fmt.Sprintf("%d %s in %d out %d %v", x.Response.Status, x.Response.Source, x.Request.Body.Taken(), x.Response.BodySent, x.Err)
}

func TestASocketPassesTheStagesAndIsLoggedOnceAtItsEnd(t *testing.T) {
	url, _, _ := echoer(t)
	stage := logging{make(chan string, 10)}
	h := open(t, sockets(url), func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) { return gateway.Built{Pipeline: stage}, nil }
	})
	nc, r := h.dial()
	send(t, nc, handshake+"\r\n")
	if head, err := readHead(r); err != nil || !strings.Contains(head, "X-Passed: response stage\r\n") {
		t.Fatalf("the 101 is %q, %v", head, err)
	}
	_, _ = nc.Write(frame(fin|opText, []byte("12345"), []byte{1, 2, 3, 4}))
	wantFrame(t, r, fin|opText, []byte("12345"))
	select {
	case line := <-stage.ended:
		t.Errorf("logged while open: %s", line)
	default:
	}
	nc.Close()
	if got := <-stage.ended; got != "101 upstream in 11 out 7 <nil>" {
		t.Errorf("logged %q", got)
	}
}

func TestShutdownClosesSocketsInGoodOrderWithinTheDrain(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, gone := echoer(t)
		h := open(t, "[http]\ndrain = \"10s\"\n"+sockets(url))
		nc, r := h.socket()
		h.stop()
		_, _ = nc.Write(frame(fin|opText, []byte("draining"), []byte{1, 2, 3, 4}))
		wantFrame(t, r, fin|opText, []byte("draining"))
		wantFrame(t, r, fin|opClose, []byte{3, 233})
		_, _ = nc.Write(frame(fin|opClose, []byte{3, 233}, []byte{1, 2, 3, 4}))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("got %v behind the close", err)
		}
		nc.Close()
		if err := <-h.ended; err != nil {
			t.Errorf("Run says %v", err)
		}
		if err := <-gone; err != io.EOF {
			t.Errorf("the upstream saw %v", err)
		}
	})
}

// secureSocket opens a WebSocket over TLS.
func (h *house) secureSocket() (*tls.Conn, *bufio.Reader) {
	h.t.Helper()
	raw, _ := h.dial()
	nc := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	send(h.t, nc, handshake+"\r\n")
	r := bufio.NewReader(nc)
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		h.t.Fatalf("handshake: %q, %v", head, err)
	}
	return nc, r
}

func secureSockets(upstream, more string) string {
	return "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nself_signed = [\"gw.test\"]\n" + more + sockets(upstream)
}

func TestSocketsWorkOverTLS(t *testing.T) {
	url, heads, gone := echoer(t)
	h := open(t, secureSockets(url, ""))
	nc, r := h.secureSocket()
	if head := <-heads; !strings.Contains(head, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("the upstream got %s", head)
	}
	large := bytes.Repeat([]byte("large "), 200_000)
	for _, payload := range [][]byte{[]byte("small"), large, []byte("small again")} {
		go func() { _, _ = nc.Write(frame(fin|opBin, payload, []byte{1, 2, 3, 4})) }()
		wantFrame(t, r, fin|opBin, payload)
	}
	nc.Close()
	if err := <-gone; err != io.EOF {
		t.Errorf("the upstream saw %v", err)
	}
}

func TestSocketsOverTLSAreClosedInGoodOrder(t *testing.T) {
	for name, more := range map[string]string{"idle": "upgrade_idle = \"100ms\"\n", "reload": ""} {
		url, _, gone := echoer(t)
		h := open(t, secureSockets(url, "[http]\ndrain = \"50ms\"\n")+"[route.timeouts]\n"+more)
		nc, r := h.secureSocket()
		if name == "reload" {
			h.write(secureSockets(url, "[http]\ndrain = \"50ms\"\n") + "priority = 3\n")
			if _, err := h.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		wantFrame(t, r, fin|opClose, []byte{3, 233})
		_, _ = nc.Write(frame(fin|opClose, []byte{3, 233}, []byte{1, 2, 3, 4}))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("%s: got %v behind the close", name, err)
		}
		if err := <-gone; err != io.EOF {
			t.Errorf("%s: the upstream saw %v", name, err)
		}
	}
}

func TestUpstreamsOfSocketsMaySpeakTLS(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		app := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			nc, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", acceptFor("Sec-WebSocket-Key: "+r.Header.Get("Sec-WebSocket-Key")+"\r\n"))
			for {
				first, payload, _, err := readFrame(rw.Reader)
				if err != nil {
					return
				}
				_, _ = nc.Write(frame(first, payload, nil))
			}
		}))
		defer app.Close()
		h := open(t, "[[upstream]]\nname = \"u\"\nendpoints = [\""+app.URL+"\"]\n[upstream.tls]\ninsecure = true\n"+sockets("u"))
		nc, r := h.socket()
		_, _ = nc.Write(frame(fin|opText, []byte("hello"), []byte{1, 2, 3, 4}))
		wantFrame(t, r, fin|opText, []byte("hello"))
		nc.Close()
	})
}

func TestSocketsAreLeftAloneByReloadsOfOthers(t *testing.T) {
	overBoth(t, func(t *testing.T, open opener) {
		url, _, gone := echoer(t)
		other, _ := recorder(t, ok)
		h := open(t, "[http]\ndrain = \"1ms\"\n"+sockets(url))
		const clients, messages = 12, 60
		var clientsDone sync.WaitGroup
		quiet := make(chan struct{})
		for i := range clients {
			nc, r := h.socket()
			clientsDone.Go(func() {
				defer nc.Close()
				rng := rand.New(rand.NewPCG(uint64(i), 7))
				for range messages {
					payload := bytes.Repeat([]byte{byte(i)}, rng.IntN(100_000))
					go func() { _, _ = nc.Write(frame(fin|opBin, payload, []byte{1, 2, 3, 4})) }()
					first, got, _, err := readFrame(r)
					if err != nil || first != fin|opBin || !bytes.Equal(got, payload) {
						t.Errorf("client %d got frame %#x of %d bytes, %v; want %d", i, first, len(got), err, len(payload))
						return
					}
				}
				<-quiet
			})
		}
		for i := range 30 {
			h.write(fmt.Sprintf("[http]\ndrain = \"1ms\"\n%s[[route]]\nname = \"other-%d\"\npath = \"/other/%d\"\nupstream = %q\n", sockets(url), i, i, other))
			if _, err := h.Reload(); err != nil {
				t.Error(err)
			}
		}
		h.wantMetric(fmt.Sprintf(`moongate_upgrade_open_connections{route="all"} %d`, clients))
		close(quiet)
		clientsDone.Wait()
		for range clients {
			if err := <-gone; err != io.EOF {
				t.Errorf("an upstream saw %v", err)
			}
		}
		h.wantMetric(`moongate_upgrade_open_connections{route="all"} 0`)
	})
}

// refusing is a pipeline whose response function takes the switch back.
type refusing struct{ logging }

func (s refusing) Stages(*core.Route) []core.Stage { return []core.Stage{s} }
func (s refusing) Response(x *core.Exchange) error {
	x.Response.Status = 403
	return nil
}

func TestAResponseFunctionMayTakeTheSwitchBack(t *testing.T) {
	url, _, gone := echoer(t)
	stage := refusing{logging{make(chan string, 10)}}
	h := open(t, sockets(url), func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) { return gateway.Built{Pipeline: stage}, nil }
	})
	nc, r := h.dial()
	for range 2 { // the client's connection stays, the upstream's does not
		send(t, nc, handshake+"\r\n")
		if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 403 ") || !strings.Contains(head, "Content-Length: 0\r\n") || strings.Contains(head, "Upgrade:") {
			t.Fatalf("got %q, %v", head, err)
		}
		if got := <-stage.ended; !strings.HasPrefix(got, "403 ") {
			t.Errorf("logged %s", got)
		}
		if err := <-gone; err == nil {
			t.Error("the upstream's socket is still open")
		}
	}
}

func TestASocketWhoseHandshakeIsSlowEndsWithItsClient(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan error, 1)
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		_, _ = readHead(r)
		close(asked)
		_, err := r.ReadByte()
		gone <- err
	})
	h := open(t, sockets(url))
	nc, _ := h.dial()
	send(t, nc, handshake+"\r\n")
	<-asked
	nc.Close()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the upstream was not told that the client has left")
	}
}

func TestOpenWebSocketsOfAnUpstreamAreBounded(t *testing.T) {
	url, _, _ := echoer(t)
	text := routeTo(url, "[upstream.pool]\nupgrades = 2\n") + "upgrade = [\"websocket\"]\n"
	h := open(t, text)
	status := func() string {
		nc, r := h.dial()
		defer nc.Close()
		send(t, nc, handshake+"Connection: close\r\n\r\n")
		head, err := readHead(r)
		if err != nil {
			t.Fatal(err)
		}
		return head[len("HTTP/1.1 "):][:3]
	}
	first, _ := h.socket()
	h.socket()
	if got := status(); got != "503" {
		t.Errorf("a third WebSocket: %s", got)
	}
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != "503" {
		t.Errorf("a third WebSocket after a reload: %s", got)
	}
	if line := "moongate_upstream_pool_exhausted_total{upstream=\"u\"} 2\n"; !strings.Contains(h.scrape(), line) {
		t.Errorf("metrics lack %s", line)
	}
	first.Close()
	eventually(t, "there is room again", func() bool { return status() == "101" })
}

func TestARefusedHandshakeGivesItsPlaceBack(t *testing.T) {
	url, _ := recorder(t, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
	h := open(t, routeTo(url, "[upstream.pool]\nupgrades = 1\n")+"upgrade = [\"websocket\"]\n")
	nc, r := h.dial()
	for range 3 {
		send(t, nc, handshake+"\r\n")
		head, err := readHead(r)
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 403 ") {
			t.Fatalf("%q %v", head, err)
		}
		expect(t, r, "no")
	}
}
