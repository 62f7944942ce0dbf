package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hurried asks a megabyte a second after so short a grace that nobody who is slow can pass.
const hurried = "[http]\nmin_rate = \"1MiB/s\"\nmin_rate_grace = \"100ms\"\n"

// drip writes a byte now and then until it cannot any more.
func drip(w io.Writer) {
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if _, err := w.Write([]byte("x")); err != nil {
			return
		}
	}
}

// slowed waits for the log entry of a client that was too slow, and for the series that counts it.
func slowed(t *testing.T, h *house, entries chan entry, reason string) {
	t.Helper()
	if e := next(t, entries); e.status != 408 || !strings.Contains(e.err, "slower than 1048576 bytes a second") {
		t.Errorf("the log has %+v", e)
	}
	eventually(t, "it is counted", func() bool {
		return strings.Contains(h.scrape(), fmt.Sprintf("moongate_http_cut_requests_total{reason=%q} 1\n", reason))
	})
}

func TestABodyThatDripsIs408(t *testing.T) {
	for name, framing := range map[string]string{
		"sized": "Content-Length: 1000\r\n\r\n", "chunked": "Transfer-Encoding: chunked\r\n\r\n1000\r\n", "moved in the kernel": "Content-Length: 1000000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			url, heads, left := working(t)
			log, entries := watching()
			h := open(t, hurried+route(url), through(log))
			nc, r := h.dial()
			send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\n"+framing)
			go drip(nc)
			<-heads
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != 408 || !resp.Close {
				t.Fatal(resp, err)
			}
			if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "request body took too long") {
				t.Errorf("%s", body)
			}
			within(t, "the upstream is let go", left)
			slowed(t, h, entries, "slow_body")
		})
	}
}

func TestABodyThatDripsIs408OverHTTP2(t *testing.T) {
	for _, protocol := range []string{"h1", "h2c"} {
		url, _, _ := working(t)
		if protocol == "h2c" {
			url = upstreamH2C(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		}
		log, entries := watching()
		h := open(t, hurried+routeTo(url, fmt.Sprintf("protocol = %q", protocol)), through(log))
		in, out := io.Pipe()
		go drip(out)
		resp, err := h.client2().Do(h.request("POST", "/", in))
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 408 {
			t.Error(protocol, resp.StatusCode)
		}
		slowed(t, h, entries, "slow_body")
	}
}

// large answers with more than the kernel keeps for a reader who does not read, and tells when it is let go.
func large(t *testing.T, head string) (url string, left chan struct{}) {
	left = make(chan struct{}, 10)
	return scripted(t, func(nc net.Conn) {
		if _, err := readHead(bufio.NewReader(nc)); err != nil {
			return
		}
		_, err := io.WriteString(nc, head)
		for piece := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"; err == nil; {
			_, err = io.WriteString(nc, piece)
		}
		left <- struct{}{}
	}), left
}

var largeHeads = map[string]string{
	"sized":   "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n",
	"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
}

func TestAnAnswerThatNobodyReadsIsCut(t *testing.T) {
	for name, head := range largeHeads {
		t.Run(name, func(t *testing.T) {
			url, left := large(t, head)
			log, entries := watching()
			h := open(t, hurried+route(url), through(log))
			nc, _ := h.dial()
			send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			within(t, "the upstream is let go", left)
			slowed(t, h, entries, "slow_reader")
		})
		t.Run(name+" over HTTP/2", func(t *testing.T) {
			url, left := large(t, head)
			log, entries := watching()
			h := open(t, hurried+route(url), through(log))
			resp, err := h.client2().Do(h.request("GET", "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			within(t, "the upstream is let go", left)
			slowed(t, h, entries, "slow_reader")
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Error("the client saw a clean end")
			}
		})
	}
}

// TestWhoHasNothingToSayIsNotSlow has conversations that rest for longer than the grace.
func TestWhoHasNothingToSayIsNotSlow(t *testing.T) {
	const rest = 400 * time.Millisecond
	pause := func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
	t.Run("a stream of events", func(t *testing.T) {
		h := open(t, hurried+route(upstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				pause(r.Context())
				_, _ = io.WriteString(w, "data: x\n\n")
				w.(http.Flusher).Flush()
			}
		})))
		for _, c := range []*http.Client{h.client2(), {Transport: &http.Transport{DisableKeepAlives: true}}} {
			if _, body := h.do(c, h.request("GET", "/", nil)); body != strings.Repeat("data: x\n\n", 3) {
				t.Errorf("%q", body)
			}
		}
	})
	t.Run("a WebSocket", func(t *testing.T) {
		url, _, _ := echoer(t)
		h := open(t, hurried+sockets(url))
		nc, r := h.socket()
		for range 3 {
			pause(t.Context())
			send(t, nc, string(frame(0x81, []byte("hello"), []byte("mask"))))
			wantFrame(t, r, 0x81, []byte("hello"))
		}
	})
	t.Run("a body whose answer has begun", func(t *testing.T) {
		echo := func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.(http.Flusher).Flush()
			b := make([]byte, 5)
			for {
				if _, err := io.ReadFull(r.Body, b); err != nil {
					return
				}
				_, _ = w.Write(b)
				w.(http.Flusher).Flush()
			}
		}
		for name, text := range map[string]string{"h1": routeTo(upstream(t, echo), ""), "h2c": routeTo(upstreamH2C(t, echo), "protocol = \"h2c\"")} {
			h := open(t, hurried+text)
			in, out := io.Pipe()
			resp, err := h.client2().Do(h.request("POST", "/", in))
			if err != nil {
				t.Fatal(name, err)
			}
			got := make([]byte, 5)
			for range 3 {
				pause(t.Context())
				_, _ = io.WriteString(out, "hello")
				if _, err := io.ReadFull(resp.Body, got); err != nil {
					t.Fatal(name, err)
				}
			}
			out.Close()
			resp.Body.Close()
		}
	})
	t.Run("a call of gRPC", func(t *testing.T) {
		h := open(t, hurried+routeTo(upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		}), "protocol = \"h2c\""))
		in, out := io.Pipe()
		go func() {
			for range 3 {
				pause(t.Context())
				_, _ = io.WriteString(out, "x")
			}
			out.Close()
		}()
		if _, body := h.do(h.client2(), h.request("POST", "/s/m", in, "Content-Type", "application/grpc")); body != "3 <nil>" {
			t.Errorf("%q", body)
		}
	})
}
