package gateway_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/server/h2test"
)

// call is a request whose client is still sending, as an endpoint sees it that is asked about it whenever something of it comes.
type call struct {
	framer
	stream uint32
	n      int    // of the endpoint's requests, from 1
	body   []byte // that has come
	ended  bool
}

func (c call) refuse() { c.reset(7) }

func (c call) reset(code uint32) {
	c.frame(frameReset, 0, c.stream, binary.BigEndian.AppendUint32(nil, code))
}

// calls starts an endpoint that asks about each call until it is told that the call is settled. Who has sent nothing is asked about, too.
func calls(t *testing.T, settle func(c call) bool) string {
	t.Helper()
	var mu sync.Mutex
	n := 0
	return scripted(t, func(nc net.Conn) {
		f := framer{nc}
		if _, err := io.ReadFull(nc, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		f.frame(frameSettings, 0, 0, nil)
		open := map[uint32]*call{}
		for {
			kind, flags, stream, payload, err := f.read()
			if err != nil {
				return
			}
			if kind == frameHeaders && open[stream] == nil {
				mu.Lock()
				n++
				open[stream] = &call{framer: f, stream: stream, n: n}
				mu.Unlock()
			}
			c := open[stream]
			if c == nil || kind != frameHeaders && kind != frameData {
				continue
			}
			if kind == frameData && len(payload) > 0 {
				c.body = append(c.body, payload...)
				f.frame(8, 0, stream, binary.BigEndian.AppendUint32(nil, uint32(len(payload))))
				f.frame(8, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(len(payload))))
			}
			if c.ended = flags&endStream != 0; settle(*c) {
				delete(open, stream)
			}
		}
	})
}

// answer gives back what has come, and ends the call.
func (c call) answer() {
	c.frame(frameHeaders, endHeaders, c.stream, []byte{0x88}) // :status 200
	for b := c.body; len(b) > 0; {
		n := min(len(b), 16<<10)
		c.frame(frameData, 0, c.stream, b[:n])
		b = b[n:]
	}
	c.frame(frameData, endStream, c.stream, nil)
}

func (h *house) h2(t *testing.T) *h2test.Conn {
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	c, err := h2test.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// unfinished opens a request whose client goes on sending, and rests once it has sent so many bytes.
func (h *house) unfinished(t *testing.T, kind string, size int) *h2test.Stream {
	t.Helper()
	s, err := h.h2(t).Open(false, ":method", "POST", ":scheme", "http", ":path", "/x", ":authority", "gw", "content-type", kind)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = s.Write(noise(size)) }()
	return s
}

// TestAClientThatRestsHearsWhatBecameOfItsRequest: not only once it says more, or after the time that it may rest.
func TestAClientThatRestsHearsWhatBecameOfItsRequest(t *testing.T) {
	after := func(size int, do func(call)) func(call) bool {
		return func(c call) bool {
			if len(c.body) < size {
				return false
			}
			do(c)
			return true
		}
	}
	reset := func(code uint32) func(call) { return func(c call) { c.reset(code) } }
	away := func(c call) {
		c.frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint64(nil, 0))
		_, _ = io.Copy(io.Discard, c.nc)
	}
	cut := func(c call) { c.nc.Close() }
	trailersAlone := func(c call) {
		c.frame(frameHeaders, endHeaders|endStream, c.stream, []byte{0x88}) // :status 200
		c.reset(0)
	}
	deny := through(&stage{name: "auth", request: func(x *core.Exchange) (*core.Reply, error) {
		return core.ErrorReply(core.FromFilter, 403, "not you"), nil
	}})
	for name, c := range map[string]struct {
		settle  func(call) bool
		size    int
		status  int
		code    string
		message string
		change  []func(*gateway.Options)
	}{
		"refused before it sent anything": {after(0, call.refuse), 0, 503, "14", "upstream did not take the request", nil},
		"refused in its beginning":        {after(0, call.refuse), 5, 503, "14", "upstream did not take the request", nil},
		"refused behind a message":        {after(5, call.refuse), 5, 503, "14", "upstream did not take the request", nil},
		"refused when all of it was kept": {after(32<<10, call.refuse), 32 << 10, 503, "14", "upstream did not take the request", nil},
		"refused behind what is not kept": {after(40<<10, call.refuse), 40 << 10, 503, "14", "upstream did not take the request", nil},
		"behind a GOAWAY":                 {after(5, away), 5, 503, "14", "upstream did not take the request", nil},
		"ended":                           {after(5, reset(8)), 5, 502, "14", "upstream closed the connection", nil},
		"cut":                             {after(5, cut), 5, 502, "14", "upstream closed the connection", nil},
		"answered early":                  {after(5, trailersAlone), 5, 200, "", "", nil},
		"answered by a filter":            {after(5, call.refuse), 5, 403, "7", "not you", []func(*gateway.Options){deny}},
	} {
		h := open(t, routeTo(calls(t, c.settle), "protocol = \"h2c\"\ntimeouts.connect = \"10s\""), c.change...)
		for _, kind := range []string{"application/grpc", "text/plain"} {
			s := h.unfinished(t, kind, c.size)
			if err := s.Wait(); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			body, err := io.ReadAll(s)
			want, got := fmt.Sprint(c.status, " ", c.message), fmt.Sprint(s.Status(), " ", saidIn(body))
			if kind == "application/grpc" {
				want, got = fmt.Sprint("200 ", c.code, " ", c.message), fmt.Sprint(s.Status(), " ", s.Header().Get("Grpc-Status"), " ", s.Header().Get("Grpc-Message"))
				got += string(body) // of which there is none
			}
			if err != nil || got != want {
				t.Errorf("%s, %s: %s %v, want %s", name, kind, got, err, want)
			}
		}
	}
}

// saidIn is the text of an error's JSON.
func saidIn(body []byte) string {
	var e struct{ Message string }
	_ = json.Unmarshal(body, &e)
	return e.Message
}

// TestARequestThatIsRefusedWhileItsClientSendsGoesElsewhere: with all that has come, and all that comes.
func TestARequestThatIsRefusedWhileItsClientSendsGoesElsewhere(t *testing.T) {
	for _, size := range []int{1, 5, 20 << 10} {
		url := calls(t, func(c call) bool {
			switch {
			case c.n == 1 && len(c.body) < size, c.n > 1 && !c.ended:
				return false
			case c.n == 1:
				c.refuse()
			default:
				c.answer()
			}
			return true
		})
		h := open(t, routeTo(url, "protocol = \"h2c\"\ntimeouts.connect = \"10s\""))
		nc, r := h.dial()
		text := "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
		body := noise(size + 1000)
		for piece := range slices.Chunk(body, 50) {
			text += fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		}
		send(t, nc, text+"0\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: %s, %d bytes, %v", size, resp.Status, len(got), err)
		}
	}
}
