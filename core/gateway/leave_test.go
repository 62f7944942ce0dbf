package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// within fails when what is waited for does not happen.
func within(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// working is an upstream that reads requests, says so, and answers nothing until its peer leaves.
func working(t *testing.T) (url string, heads chan string, left chan struct{}) {
	heads, left = make(chan string, 10), make(chan struct{}, 10)
	return scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		head, err := readHead(r)
		if err != nil {
			return
		}
		heads <- head
		_, _ = io.Copy(io.Discard, r)
		left <- struct{}{}
	}), heads, left
}

func TestHoweverAClientLeavesItsUpstreamIsStopped(t *testing.T) {
	for _, c := range []struct {
		name  string
		send  string
		leave func(*net.TCPConn)
	}{
		{"close", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(nc *net.TCPConn) { nc.Close() }},
		{"reset", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(nc *net.TCPConn) { _ = nc.SetLinger(0); nc.Close() }},
		{"half-close", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(nc *net.TCPConn) { _ = nc.CloseWrite() }},
		{"close behind another request", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", func(nc *net.TCPConn) { _ = nc.CloseWrite() }},
		{"close in an upload", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhello", func(nc *net.TCPConn) { nc.Close() }},
		{"half-close in an upload", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", func(nc *net.TCPConn) { _ = nc.CloseWrite() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, heads, left := working(t)
			log, entries := watching()
			h := open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q, \"http://127.0.0.1:1\"]\nhealth = { failures = 1 }\n", strings.TrimSuffix(url, "/"))+route("up"), through(log))
			var nc net.Conn
			var r *bufio.Reader
			for len(heads) == 0 { // until the one that works is asked; the other refuses
				nc, r = h.dial()
				send(t, nc, c.send)
				select {
				case <-heads:
					heads <- ""
				case <-time.After(patience):
					t.Fatal("no request reached the upstream")
				}
			}
			<-heads
			c.leave(nc.(*net.TCPConn))
			within(t, "the upstream is let go", left)
			e := next(t, entries)
			if e.status != 499 {
				t.Errorf("the log has %+v", e)
			}
			if c.name == "half-close" || c.name == "close behind another request" {
				if rest, _ := io.ReadAll(r); len(rest) > 0 {
					t.Errorf("the client still got %q", rest)
				}
			}
			if len(heads) > 0 || len(entries) > 0 {
				t.Errorf("the request was tried again, or what followed it was served")
			}
			eventually(t, "the metrics count it as 4xx", func() bool {
				return strings.Contains(h.scrape(), `moongate_http_requests_total{class="4xx",route="all",upstream="up"} 1`+"\n")
			})
			if out := fmt.Sprintf("moongate_upstream_endpoint_ready{endpoint=%q,upstream=\"up\"} 0\n", strings.TrimPrefix(url, "http://")); strings.Contains(h.scrape(), out) {
				t.Errorf("the endpoint was put out")
			}
		})
	}
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (h *house) scrape() string {
	h.t.Helper()
	var b strings.Builder
	w := &recorderWriter{Builder: &b, header: http.Header{}}
	h.counts.Handler().ServeHTTP(w, &http.Request{Method: "GET", Header: http.Header{}})
	return b.String()
}

// recorderWriter keeps a response's body.
type recorderWriter struct {
	*strings.Builder
	header http.Header
}

func (w *recorderWriter) Header() http.Header { return w.header }
func (w *recorderWriter) WriteHeader(int)     {}

func TestAClientThatLeavesInTheBodyStopsTheUpstream(t *testing.T) {
	left := make(chan struct{})
	url := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for {
			if _, err := io.WriteString(nc, "1\r\nx\r\n"); err != nil {
				close(left)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	log, entries := watching()
	h := open(t, route(url), through(log))
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	within(t, "the upstream is let go", left)
	if e := next(t, entries); e.status != 499 {
		t.Errorf("the log has %+v", e)
	}
}

func TestASlowReaderHoldsTheUpstreamBack(t *testing.T) {
	const size = 64 << 20
	sent := make(chan int, 1)
	url := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		_ = nc.SetWriteDeadline(time.Now().Add(700 * time.Millisecond))
		n, _ := nc.Write(make([]byte, size))
		sent <- n
	})
	h := open(t, route(url))
	nc, _ := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if n := <-sent; n > size/2 {
		t.Errorf("the upstream could send %d bytes to a client that read none", n)
	}
}

func TestAnUnreadUploadDoesNotHideTheAnswer(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	url := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = io.WriteString(nc, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
		<-over // neither reads nor closes
	})
	h := open(t, "[http]\nmax_body = \"1MiB\"\n"+route(url))
	for name, request := range map[string]string{
		"refused by the gateway":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n",
		"refused by the upstream": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
		"no request":              "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\nTransfer-Encoding: chunked\r\n\r\n",
		"head too large":          "POST / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 70_000) + "\r\n\r\n",
	} {
		for range 3 {
			nc, r := h.dial()
			send(t, nc, request)
			wrote := make(chan error, 1)
			go func() {
				_, err := nc.Write(make([]byte, 1_000_000))
				wrote <- err
			}()
			if err := <-wrote; err != nil {
				t.Errorf("%s: writing ended with %v before the answer was read", name, err)
			}
			head, err := readHead(r)
			if err != nil || !strings.HasPrefix(head, "HTTP/1.1 4") {
				t.Errorf("%s: %q %v", name, head, err)
			}
			nc.Close()
		}
	}
}

// TestWhoSendsEverythingFirstGetsTheWholeAnswer: some clients read nothing before their upload is over, however long it takes.
func TestWhoSendsEverythingFirstGetsTheWholeAnswer(t *testing.T) {
	answer := strings.Repeat("no", 300_000)
	over := make(chan struct{})
	defer close(over)
	url := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = fmt.Fprintf(nc, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		<-over
	})
	h := open(t, route(url))
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
	for began := time.Now(); time.Since(began) < 5*time.Second; <-time.After(50 * time.Millisecond) {
		if _, err := nc.Write(make([]byte, 1000)); err != nil {
			t.Fatalf("writing ended with %v after %s", err, time.Since(began))
		}
	}
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 401") {
		t.Fatalf("%q %v", head, err)
	}
	expect(t, r, answer)
}

func TestEmptyLinesAreNoRequest(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, "[http]\nhead_timeout = \"2s\"\n"+route(url))
	nc, r := h.dial()
	send(t, nc, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n")
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "ok")
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("an answer to nothing: %q %v", rest, err)
	}
}
