package gateway_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// limited starts an endpoint over HTTP/2 that tells each connection how many streams it may have, and answers each request with 200; behind the answer it may
// say that it wants none any more.
func limited(t *testing.T, streams func(dial int32) uint32, closes *atomic.Bool) (url string, dials *atomic.Int32) {
	t.Helper()
	dials = new(atomic.Int32)
	allow := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0, 3}, n) }
	return scripted(t, func(nc net.Conn) {
		f := framer{nc}
		if _, err := io.ReadFull(nc, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		f.frame(frameSettings, 0, 0, allow(streams(dials.Add(1))))
		for {
			kind, _, stream, _, err := f.read()
			if err != nil {
				return
			}
			if kind != frameHeaders {
				continue
			}
			if closes.Load() {
				f.frame(frameSettings, 0, 0, allow(0))
			}
			f.frame(frameHeaders, endHeaders|endStream, stream, []byte{0x88}) // :status 200
		}
	}), dials
}

// TestAnEndpointThatAllowsNoStreamsIsAskedOnce: each request connects once, not as often as it can within its wait, and nothing is left of that when streams are
// allowed again.
func TestAnEndpointThatAllowsNoStreamsIsAskedOnce(t *testing.T) {
	var allows, closes atomic.Bool
	url, dials := limited(t, func(int32) uint32 {
		if allows.Load() {
			return 100
		}
		return 0
	}, &closes)
	h := open(t, routeTo(url, "protocol = \"h2c\"\nhealth.failures = 1000000"))
	for range 3 {
		if got := status(h, "/"); got != 502 {
			t.Errorf("no streams: %d", got)
		}
	}
	if n := dials.Load(); n != 3 {
		t.Errorf("%d connections for three requests", n)
	}
	allows.Store(true)
	if got := status(h, "/"); got != 200 {
		t.Errorf("streams are allowed again: %d", got)
	}
	closes.Store(true)
	for range 3 { // each connection takes one
		if got := status(h, "/"); got != 200 {
			t.Errorf("connections that take one request: %d", got)
		}
	}
}

// TestHeadsOfAnswersHaveAnEnd: an endpoint that never ends one is not read for ever.
func TestHeadsOfAnswersHaveAnEnd(t *testing.T) {
	ended := make(chan int, 1)
	url := frames(t, func(f framer, stream uint32, _ int, _ []byte) bool {
		f.frame(frameHeaders, 0, stream, []byte{0x88})
		head := []byte{0, 0, 0, 9, 0, 0, 0, 0, byte(stream)}
		n := 0
		for ; n < 1<<22; n++ {
			if _, err := f.nc.Write(head); err != nil {
				break
			}
		}
		ended <- n
		return false
	})
	h := open(t, routeTo(url, "protocol = \"h2c\"\ntimeouts.first_byte = \"10s\""))
	if got := status(h, "/"); got != 502 {
		t.Errorf("got %d", got)
	}
	if n := <-ended; n == 1<<22 {
		t.Error("the connection lives")
	}
}

// TestInterimAnswersHaveAnEnd: so many and no more before the answer, whatever the protocol.
func TestInterimAnswersHaveAnEnd(t *testing.T) {
	for n, want := range map[int]string{900: "200", 5000: "502"} {
		h1, _ := recorder(t, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", n)+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		hints := fieldBlock(":status", "103", "link", "a")
		h2 := frames(t, func(f framer, stream uint32, _ int, _ []byte) bool {
			for range n {
				f.frame(frameHeaders, endHeaders, stream, hints)
			}
			return true
		})
		for protocol, url := range map[string]string{"h1": h1, "h2c": h2} {
			h := open(t, routeTo(url, fmt.Sprintf("protocol = %q", protocol)))
			got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if !strings.Contains(got, "HTTP/1.1 "+want+" ") {
				t.Errorf("%d over %s: ...%q, want %s", n, protocol, got[max(0, len(got)-200):], want)
			}
		}
	}
}
