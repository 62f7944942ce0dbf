package gateway_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// framer is an endpoint's end of a connection over HTTP/2, in frames. It reads no heads and answers 200 with the body that came.
type framer struct {
	nc net.Conn
}

func (f framer) frame(kind, flags byte, stream uint32, payload []byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	head = binary.BigEndian.AppendUint32(append(head[1:], kind, flags), stream)
	_, _ = f.nc.Write(append(head, payload...))
}

func (f framer) read() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(f.nc, head[:]); err != nil {
		return
	}
	payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(f.nc, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1), payload, err
}

const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7
	endStream, endHeaders                                           = 1, 4
)

// frames starts an endpoint that asks about each request, by its number, once its body has come: true answers it.
func frames(t *testing.T, whole func(f framer, stream uint32, n int, body []byte) bool) string {
	t.Helper()
	var mu sync.Mutex
	n := 0
	return scripted(t, func(nc net.Conn) {
		f := framer{nc}
		if _, err := io.ReadFull(nc, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		f.frame(frameSettings, 0, 0, nil)
		bodies := map[uint32][]byte{}
		for {
			kind, flags, stream, payload, err := f.read()
			if err != nil {
				return
			}
			if kind == frameData {
				bodies[stream] = append(bodies[stream], payload...)
				f.frame(8, 0, stream, binary.BigEndian.AppendUint32(nil, max(1, uint32(len(payload)))))
				f.frame(8, 0, 0, binary.BigEndian.AppendUint32(nil, max(1, uint32(len(payload)))))
			}
			if kind != frameData && kind != frameHeaders || flags&endStream == 0 {
				continue
			}
			mu.Lock()
			n++
			now := n
			mu.Unlock()
			if whole(f, stream, now, bodies[stream]) {
				f.frame(frameHeaders, endHeaders, stream, []byte{0x88}) // :status 200
				for piece := range slices.Chunk(bodies[stream], 16<<10) {
					f.frame(frameData, 0, stream, piece)
				}
				f.frame(frameData, endStream, stream, nil)
			}
			delete(bodies, stream)
		}
	})
}

// TestWhatAnHTTP2EndpointHasNotLookedAtIsRepeatedWhole: every second request is refused, with all of its body sent.
func TestWhatAnHTTP2EndpointHasNotLookedAtIsRepeatedWhole(t *testing.T) {
	refuse := func(f framer, stream uint32) { f.frame(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, 7)) }
	leave := func(f framer, stream uint32) {
		f.frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint64(nil, uint64(stream-2)<<32))
		_, _ = io.Copy(io.Discard, f.nc)
	}
	for name, say := range map[string]func(framer, uint32){"refused": refuse, "gone": leave} {
		var mu sync.Mutex
		var lost [][]byte
		url := frames(t, func(f framer, stream uint32, n int, body []byte) bool {
			if n%2 == 1 || stream == 1 {
				return true
			}
			mu.Lock()
			lost = append(lost, body)
			mu.Unlock()
			say(f, stream)
			return false
		})
		h := open(t, twoDoors+routeTo(url, "protocol = \"h2c\"\nhealth.failures = 1"))
		for _, l := range h.legs() {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH"} {
				for _, size := range []int{0, 5, 20 << 10, 32 << 10} {
					for _, length := range []bool{true, false} {
						body := noise(size)
						if method == "GET" {
							body = nil
						}
						var r io.Reader = bytes.NewReader(body)
						if !length {
							r = struct{ io.Reader }{r}
						}
						resp, got := l.ask(t, method, "/", r)
						if resp.StatusCode != 200 || !bytes.Equal(got, body) {
							t.Fatalf("%s, %s: %s of %d bytes, length known %v: %s, %d bytes", name, l.name, method, len(body), length, resp.Status, len(got))
						}
						mu.Lock()
						for _, b := range lost {
							if !bytes.Equal(b, body) {
								t.Errorf("%s, %s: %s of %d bytes came as %d", name, l.name, method, len(body), len(b))
							}
						}
						lost = nil
						mu.Unlock()
					}
				}
			}
		}
		if !strings.Contains(h.scrape(), "moongate_upstream_ready_endpoints{upstream=\"u\"} 1\n") {
			t.Errorf("%s: it speaks against the endpoint", name)
		}
	}
}

// TestABodyThatIsLongIsSentOnceOverHTTP2: what is not kept is not made up.
func TestABodyThatIsLongIsSentOnceOverHTTP2(t *testing.T) {
	url := frames(t, func(f framer, stream uint32, n int, _ []byte) bool {
		if n == 2 {
			f.frame(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, 7))
		}
		return n != 2
	})
	h := open(t, routeTo(url, "protocol = \"h2c\""))
	for _, want := range []int{200, 503, 200} {
		if resp, got := h.put("POST", noise(40<<10), want == 503); resp.StatusCode != want || want == 200 && got != string(noise(40<<10)) {
			t.Errorf("%s, %d bytes, want %d", resp.Status, len(got), want)
		}
	}
}

// TestASharedConnectionThatIsFoundClosedIsNobodysFault is that of connections over HTTP/1.1, for those that many share.
func TestASharedConnectionThatIsFoundClosedIsNobodysFault(t *testing.T) {
	posts := make(chan struct{}, 100)
	url := frames(t, func(f framer, stream uint32, _ int, body []byte) bool {
		if string(body) == "post" {
			posts <- struct{}{}
		}
		if stream > 1 { // the second request on a connection finds it closed
			_ = f.nc.(*net.TCPConn).SetLinger(0)
			f.nc.Close()
		}
		return stream == 1
	})
	h := open(t, twoDoors+routeTo(url, "protocol = \"h2c\"\nhealth.failures = 1"))
	for _, l := range h.legs() {
		for _, method := range []string{"GET", "GET", "PUT", "DELETE", "GET", "PUT"} {
			if resp, got := l.ask(t, method, "/", strings.NewReader("hello")); resp.StatusCode != 200 || string(got) != "hello" {
				t.Errorf("%s: %s: %s %q", l.name, method, resp.Status, got)
			}
		}
		for len(posts) > 0 {
			<-posts
		}
		statuses := map[int]int{}
		for range 4 {
			resp, _ := l.ask(t, "POST", "/", strings.NewReader("post"))
			statuses[resp.StatusCode]++
		}
		if len(posts) != 4 || statuses[502] != 2 || statuses[200] != 2 {
			t.Errorf("%s: four POSTs were delivered %d times and answered %v", l.name, len(posts), statuses)
		}
	}
	if !strings.Contains(h.scrape(), "moongate_upstream_ready_endpoints{upstream=\"u\"} 1\n") {
		t.Error("a connection that had served speaks against the endpoint")
	}
}

// TestManyRequestsOnAConnectionThatBreaksPutNobodyOut: they failed together, for one reason.
func TestManyRequestsOnAConnectionThatBreaksPutNobodyOut(t *testing.T) {
	const many = 20
	var mu sync.Mutex
	waiting, broken := 0, false
	url := frames(t, func(f framer, _ uint32, n int, _ []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if n == 1 || broken {
			return true
		}
		if waiting++; waiting == many {
			broken = true
			_ = f.nc.(*net.TCPConn).SetLinger(0)
			f.nc.Close()
		}
		return false
	})
	h := open(t, routeTo(url, "protocol = \"h2c\"\nhealth.failures = 3"))
	c := h.client2()
	c.Timeout = time.Minute
	if resp, _ := h.do(c, h.request("GET", "/", nil)); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			resp, err := c.Do(h.request("GET", "/", nil))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Error(resp.Status)
			}
		})
	}
	all.Wait()
}

// TestCallsWhoseAnswerHasBegunGoOn: a stream that goes on for hours holds on to nothing of what has passed.
func TestCallsWhoseAnswerHasBegunGoOn(t *testing.T) {
	url := upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		b := make([]byte, 1000)
		for {
			n, err := r.Body.Read(b)
			if _, _ = w.Write(b[:n]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	h := open(t, routeTo(url, "protocol = \"h2c\""))
	in, out := io.Pipe()
	c := h.client2()
	c.Timeout = time.Minute
	resp, err := c.Do(h.request("POST", "/", in))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 100 {
		want := fmt.Sprintf("%03d%s", i, noise(997))
		if _, err := io.WriteString(out, want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("message %d: %.10q %v", i, got, err)
		}
	}
	out.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
}
