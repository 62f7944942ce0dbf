//go:build e2e

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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
)

// stormFor is how long the storm lasts: 15 s, or what MOONGATE_STORM says.
func stormFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("MOONGATE_STORM")
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// storm is traffic of all kinds at once through one gateway that is reloaded all the time. Every request carries a number of its own, and every
// answer, event, message and frame must bring that number back.
type storm struct {
	t       *testing.T
	b       *program
	number  atomic.Int64
	counts  sync.Map // kind to *atomic.Int64
	backs   [3]*httptest.Server
	grpc    *httptest.Server
	reloads int
}

const stormConfig = `
[[listener]]
address = "127.0.0.1:0"
[[listener]]
name = "secure"
address = "127.0.0.1:0"
[listener.tls]
self_signed = ["localhost"]
[http]
max_body = "1GiB"
body_idle = "%ds"
min_rate_grace = "60s" # the clients are honest, whatever else this machine does
[log]
access = "off"
level = "error"
[[upstream]]
name = "api"
endpoints = [%s]
[upstream.timeouts]
connect = "20s"
first_byte = "%ds"
total = "60s"
[upstream.pool]
connections = 1000
wait = "20s"
[[upstream]]
name = "live"
endpoints = [%q]
[upstream.timeouts]
connect = "20s"
first_byte = "30s"
total = "60s"
[upstream.pool]
connections = 1000
wait = "20s"
[[upstream]]
name = "grpc"
endpoints = [%q]
protocol = "h2c"
[upstream.timeouts]
connect = "20s"
first_byte = "30s"
total = "60s"
[[route]]
name = "api"
path = "/api/**"
upstream = "api"
[[route]]
name = "live"
path = "/live/**"
upstream = "live"
upgrade = "websocket"
[[route]]
name = "grpc"
path = "/grpc/**"
upstream = "grpc"
`

// config is the configuration of the nth reload: endpoints, limits and routes come and go, what lives long is left alone.
func (s *storm) config(n int) string {
	endpoints := fmt.Sprintf("%q", s.backs[0].URL)
	if n%2 == 0 {
		endpoints += fmt.Sprintf(", %q", s.backs[1].URL)
	}
	text := fmt.Sprintf(stormConfig, 30+n/7%2, endpoints, 30+n%3, s.backs[2].URL, s.grpc.URL)
	if n%3 == 0 {
		text += "[[route]]\nname = \"extra\"\npath = \"/extra/**\"\nupstream = \"api\"\n"
	}
	return text
}

func TestE2EAStormOfEverythingLeavesNothingBehind(t *testing.T) {
	s := &storm{t: t}
	for i := range s.backs {
		s.backs[i] = httptest.NewUnstartedServer(http.HandlerFunc(stormUpstream))
		s.backs[i].Config.ErrorLog = log.New(io.Discard, "", 0)
		s.backs[i].Start()
		t.Cleanup(s.backs[i].Close)
	}
	s.grpc = httptest.NewUnstartedServer(http.HandlerFunc(stormCall))
	s.grpc.Config.Protocols = new(http.Protocols)
	s.grpc.Config.Protocols.SetUnencryptedHTTP2(true)
	s.grpc.Start()
	t.Cleanup(s.grpc.Close)
	s.b = startBinary(t, s.config(0))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway said\n%s", s.b.said)
		}
	})
	s.blow(2 * time.Second)
	base := s.settle(nil)
	s.blow(stormFor(t))
	after := s.settle(&base)
	t.Logf("at rest before: %v", base)
	t.Logf("at rest after %s and %d reloads: %v", stormFor(t), s.reloads, after)
	s.counts.Range(func(kind, n any) bool {
		t.Logf("%7d %s", n.(*atomic.Int64).Load(), kind)
		return true
	})
}

// held is what the gateway holds.
type held struct {
	goroutines, files, pooled, busy, sockets int
	heap                                     int64
}

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors of which %d are idle upstream connections, %d in use, %d sockets, heap %.1f MiB", h.goroutines, h.files, h.pooled,
		h.busy, h.sockets, mib(h.heap))
}

func (s *storm) held() held {
	for range 2 { // a pool of package sync gives up what it keeps at the second collection
		if _, err := s.b.ask("GET", "/debug/pprof/heap?gc=1"); err != nil {
			s.t.Fatal(err)
		}
	}
	h := held{files: s.b.descriptors()}
	h.goroutines, h.heap = int(s.b.metric("go_goroutines")), int64(s.b.metric("go_memstats_heap_alloc_bytes"))
	h.pooled, h.busy = int(s.b.metric("moongate_upstream_pool_size")), int(s.b.metric("moongate_upstream_pool_busy"))
	h.sockets = int(s.b.metric("moongate_upgrade_open_connections"))
	return h
}

// settle waits until nothing is under way any more, and no more is held than before.
func (s *storm) settle(base *held) held {
	s.t.Helper()
	last := held{files: 1 << 30}
	for deadline := time.Now().Add(time.Minute); ; <-time.After(300 * time.Millisecond) {
		h := s.held()
		calm := h.busy == 0 && h.sockets == 0
		if base == nil {
			calm = calm && h.goroutines >= last.goroutines-2 && h.files-h.pooled >= last.files-last.pooled
		} else {
			calm = calm && h.goroutines <= base.goroutines+15 && h.files-h.pooled <= base.files-base.pooled+8 && h.heap <= base.heap+4<<20
		}
		if calm {
			return h
		}
		if last = h; time.Now().After(deadline) {
			s.t.Fatalf("a minute later there are %v\nbefore there were %v", h, base)
		}
	}
}

// blow lets all kinds of clients loose for a while.
func (s *storm) blow(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	plain, secure := "http://"+s.b.addrs[0], "https://"+s.b.addrs[1]
	var crowd sync.WaitGroup
	loop := func(kind string, hands int, once func() error) {
		n, _ := s.counts.LoadOrStore(kind, new(atomic.Int64))
		for range hands {
			crowd.Go(func() {
				for ctx.Err() == nil && !s.t.Failed() {
					if err := once(); err != nil && !errors.Is(err, errTurnedAway) {
						s.t.Errorf("%s: %v", kind, err)
						return
					}
					n.(*atomic.Int64).Add(1)
				}
			})
		}
	}
	for _, c := range []struct{ protocol, url string }{{"h1", plain}, {"h1", secure}, {"h2c", plain}, {"h2", secure}} {
		client := speaking(s.t, c.protocol)
		defer client.CloseIdleConnections()
		name := c.protocol + " " + c.url[:5]
		loop(name+" small", 3, func() error { return s.echo(client, c.url, rand.IntN(2000)) })
		loop(name+" upload", 1, func() error { return s.echo(client, c.url, 1+rand.IntN(2<<20)) })
		loop(name+" download", 1, func() error { return s.download(client, c.url, rand.Int64N(4<<20)) })
		loop(name+" leaving", 1, func() error { return s.leave(client, c.url) })
		loop(name+" events", 1, func() error { return s.events(client, c.url) })
	}
	calls := speaking(s.t, "h2c")
	defer calls.CloseIdleConnections()
	loop("gRPC", 3, func() error { return s.call(calls, plain) })
	loop("WebSocket", 3, func() error { return s.socket(s.b.addrs[0], false) })
	loop("WebSocket leaving", 1, func() error { return s.socket(s.b.addrs[0], true) })
	for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			tick.Stop()
		case <-tick.C:
			s.reloads++
			s.b.write(s.config(s.reloads))
			if _, err := s.b.ask("POST", "/reload"); err != nil {
				s.t.Error(err)
			}
		}
	}
	crowd.Wait()
}

func (s *storm) next() string { return fmt.Sprintf("n%d", s.number.Add(1)) }

// errTurnedAway is what a client of HTTP/2 hears whose connection was about to end: nobody has seen its request, and it may send it again. This
// client does so itself where it still has the body.
var errTurnedAway = errors.New("connection was about to end")

// send asks with a number and checks that the head of the answer is to it.
func (s *storm) send(c *http.Client, r *http.Request) (*http.Response, error) {
	number := s.next()
	r.Header.Set("X-Number", number)
	resp, err := c.Do(r)
	if err != nil && (strings.Contains(err.Error(), "GOAWAY") || strings.Contains(err.Error(), "cannot rewind body") ||
		strings.Contains(err.Error(), "closed via ClientConn.Close")) { // the client's own library closed it
		return nil, errTurnedAway
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != 200 || resp.Header.Get("X-Number") != number {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		resp.Body.Close()
		return nil, fmt.Errorf("answer %s to %q is to %q: %s", resp.Status, number, resp.Header.Get("X-Number"), text)
	}
	return resp, nil
}

// echo sends a body of a size and has its sum told.
func (s *storm) echo(c *http.Client, url string, size int) error {
	body := bytes.Repeat([]byte{byte(rand.IntN(256))}, size)
	r, err := http.NewRequest("POST", url+"/api/sum", bytes.NewReader(body))
	if err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		r.ContentLength = -1
	}
	resp, err := s.send(c, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	_, crc, _ := sum(bytes.NewReader(body))
	if want := fmt.Sprintf("%s %d %08x", r.Header.Get("X-Number"), size, crc); err != nil || string(text) != want {
		return fmt.Errorf("got %q, %v, want %q", text, err, want)
	}
	return nil
}

func (s *storm) download(c *http.Client, url string, size int64) error {
	r, err := http.NewRequest("GET", fmt.Sprintf("%s/api/give?size=%d", url, size), nil)
	if err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		r.URL.RawQuery += "&length"
	}
	resp, err := s.send(c, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, crc, err := sum(resp.Body)
	if err != nil || n != size || crc != crcOf(size) {
		return fmt.Errorf("%d bytes of %d, sum right: %v, %v", n, size, crc == crcOf(size), err)
	}
	return nil
}

// leave goes away at any moment.
func (s *storm) leave(c *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(30))*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "PUT", url+"/api/sum", struct{ io.Reader }{&torrent{left: rand.Int64N(8 << 20)}})
	if rand.IntN(2) == 0 {
		r, err = http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/api/give?size=%d", url, rand.IntN(8<<20)), nil)
	}
	if err != nil {
		return err
	}
	resp, err := s.send(c, r)
	if err == nil {
		_, _, err = sum(resp.Body)
		resp.Body.Close()
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *storm) events(c *http.Client, url string) error {
	r, err := http.NewRequest("GET", url+"/live/events", nil)
	if err != nil {
		return err
	}
	resp, err := s.send(c, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	want := ""
	for i := range stormEvents {
		want += fmt.Sprintf("data: %s %d\n\n", r.Header.Get("X-Number"), i)
	}
	if err != nil || string(text) != want {
		return fmt.Errorf("got %q, %v, want %q", text, err, want)
	}
	return nil
}

// call sends messages one by one and waits for each to come back.
func (s *storm) call(c *http.Client, url string) error {
	reader, writer := io.Pipe()
	defer writer.Close()
	r, err := http.NewRequest("POST", url+"/grpc/call", reader)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	resp, err := s.send(c, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for i := range 5 {
		message := fmt.Appendf(nil, "\x00\x00\x00\x00%c%s %d", 0, r.Header.Get("X-Number"), i)
		message[4] = byte(len(message) - 5)
		if _, err := writer.Write(message); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		back := make([]byte, len(message))
		if _, err := io.ReadFull(resp.Body, back); err != nil || !bytes.Equal(back, message) {
			return fmt.Errorf("message %d came back as %q, %v", i, back, err)
		}
	}
	writer.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 || resp.Trailer.Get("Grpc-Status") != "0" {
		return fmt.Errorf("at the end %q, %v, trailers %v", rest, err, resp.Trailer)
	}
	return nil
}

// socket opens a WebSocket and has messages sent back; leaving is without a goodbye.
func (s *storm) socket(addr string, leaving bool) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	number := s.next()
	r, err := openSocket(nc, "/live/socket", "X-Number: "+number+"\r\n")
	if err != nil {
		return err
	}
	for i := range 5 {
		text := fmt.Sprint(number, " ", i)
		if _, err := nc.Write(socketFrame(0x81, text, true)); err != nil {
			return err
		}
		if leaving && i == 3 {
			return nil
		}
		if first, got, err := readSocketFrame(r); first != 0x81 || got != number+":"+text || err != nil {
			return fmt.Errorf("%q came back as %x %q, %w", text, first, got, err)
		}
	}
	if _, err := nc.Write(socketFrame(0x88, "\x03\xe8", true)); err != nil {
		return err
	}
	if first, got, err := readSocketFrame(r); first != 0x88 || got != "\x03\xe8" || err != nil {
		return fmt.Errorf("the goodbye is %x %q, %w", first, got, err)
	}
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("behind the goodbye %q, %w", rest, err)
	}
	return nil
}

const stormEvents = 5

// stormUpstream answers with the number of the request in every piece.
func stormUpstream(w http.ResponseWriter, r *http.Request) {
	number := r.Header.Get("X-Number")
	w.Header().Set("X-Number", number)
	switch r.URL.Path {
	case "/api/sum":
		n, crc, err := sum(r.Body)
		if err == nil {
			fmt.Fprintf(w, "%s %d %08x", number, n, crc)
		}
	case "/api/give":
		store(w, r)
	case "/live/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range stormEvents {
			fmt.Fprintf(w, "data: %s %d\n\n", number, i)
			w.(http.Flusher).Flush()
			<-time.After(10 * time.Millisecond)
		}
	case "/live/socket":
		echoSocket(w, r, number)
	}
}

// stormCall sends every message back as it comes.
func stormCall(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Number", r.Header.Get("X-Number"))
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.(http.Flusher).Flush()
	buf := make([]byte, 512)
	for {
		n, err := r.Body.Read(buf)
		_, _ = w.Write(buf[:n])
		w.(http.Flusher).Flush()
		if err != nil {
			break
		}
	}
	w.Header().Set("Grpc-Status", "0")
}
