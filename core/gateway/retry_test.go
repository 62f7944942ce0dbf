package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fickle is an upstream that answers the first request of each connection and closes when it has read a second one. seen counts the requests
// by method.
func fickle(t *testing.T) (url string, posts *atomic.Int32) {
	posts = new(atomic.Int32)
	return scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		for i := range 2 {
			head, err := readHead(r)
			if err != nil {
				return
			}
			if strings.HasPrefix(head, "POST") {
				posts.Add(1)
			}
			if i == 0 {
				body := make([]byte, 5)
				if strings.Contains(head, "Content-Length: 5") {
					_, _ = io.ReadFull(r, body)
				}
				_, _ = fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}
	}), posts
}

func TestAStaleConnectionIsNobodysFault(t *testing.T) {
	url, posts := fickle(t)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q]\nhealth = { failures = 1 }\n", url)+route("up"))
	nc, r := h.dial()
	ask := func(request, want string) {
		t.Helper()
		send(t, nc, request)
		head, err := readHead(r)
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 "+want) {
			t.Fatalf("%.20q gave %q %v, want %s", request, head, err, want)
		}
		if want == "200" {
			expect(t, r, "ok")
			return
		}
		_, _ = r.Discard(r.Buffered())
	}
	const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for range 6 {
		ask(get, "200")
	}
	ask("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "200")
	ask("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "200")
	before := posts.Load()
	ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "502")
	if n := posts.Load() - before; n != 1 {
		t.Errorf("the POST was delivered %d times", n)
	}
	if !strings.Contains(h.scrape(), "moongate_upstream_ready_endpoints{upstream=\"up\"} 1\n") {
		t.Error("a connection that had rested speaks against the endpoint")
	}
}

func TestABodyThatIsPartlyGoneIsNotSentTwice(t *testing.T) {
	url, _ := fickle(t)
	h := open(t, route(url))
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "ok")
	send(t, nc, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 502") {
		t.Errorf("%q %v: the client did nothing wrong", head, err)
	}
}

func TestARefusedEndpointIsPassedOver(t *testing.T) {
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	gone := "http://" + dead.Addr().String()
	dead.Close()
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q, %q]\nhealth = { failures = 1000 }\n", gone, url)+route("up"))
	for range 6 {
		got := h.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
		if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.HasSuffix(got, "hello") {
			t.Fatalf("got %q", got)
		}
	}
}

func TestOnly5xxPutAnEndpointOut(t *testing.T) {
	var status, asked atomic.Int64
	failing := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(status.Load()))
	})
	good := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	between := func(out string) *house {
		return open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q, %q]\nhealth = { failures = 3, out = %q }\n", failing, good, out)+route("up"))
	}
	relayed := func(h *house) bool {
		return strings.HasPrefix(h.raw(getClose), fmt.Sprintf("HTTP/1.1 %d ", status.Load()))
	}
	h := between("1h")
	for _, theClients := range []int64{404, 401, 429} { // a valid answer: the client is at fault
		status.Store(theClients)
		for n := 0; n < 100; {
			before := asked.Load()
			if relayed(h) {
				n++
			} else if asked.Load() == before && !strings.Contains(h.scrape(), "moongate_upstream_ready_endpoints{upstream=\"up\"} 2\n") {
				t.Fatalf("%d put the endpoint out", theClients)
			}
		}
	}
	status.Store(500)
	before, n := asked.Load(), 0
	for range 20 {
		if relayed(h) {
			n++
		}
	}
	if sent := asked.Load() - before; n != 3 || sent != 3 {
		t.Errorf("%d failures relayed, %d requests", n, sent)
	}

	h = between("1ms") // it is asked again, by and by, and once it works it is back
	eventually(t, "three failures are relayed", func() bool {
		if relayed(h) {
			n++
		}
		return n >= 6
	})
	status.Store(200)
	eventually(t, "it comes back by itself", func() bool { return relayed(h) })
}

func TestTimeLimitsHaveTheirStatuses(t *testing.T) {
	headLess := scripted(t, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) })
	trickle := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		for _, err := io.WriteString(nc, "HTTP/1.1 200 OK\r\n"); err == nil; _, err = io.WriteString(nc, "X: y\r\n") {
			time.Sleep(20 * time.Millisecond)
		}
	})
	stalled := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		_, _ = readHead(r)
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
		_, _ = io.Copy(io.Discard, r)
	})
	endless := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		for _, err := io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); err == nil; _, err = io.WriteString(nc, "1\r\nx\r\n") {
			time.Sleep(20 * time.Millisecond)
		}
	})
	for _, c := range []struct {
		name, url, limits, status string
		cut                       bool
	}{
		{"first byte", headLess, "first_byte = \"150ms\"\ntotal = \"5m\"", "504", false},
		{"total", headLess, "first_byte = \"150ms\"\ntotal = \"150ms\"\nconnect = \"100ms\"", "504", false},
		{"head in drops", trickle, "first_byte = \"150ms\"\ntotal = \"5m\"", "504", false},
		{"idle read", stalled, "idle_read = \"150ms\"", "200", true},
		{"body total", endless, "body_total = \"150ms\"", "200", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, entries := watching()
			h := open(t, route(c.url)+"[route.timeouts]\n"+c.limits+"\n", through(log))
			began := time.Now()
			got := h.raw(getClose)
			if took := time.Since(began); took < 100*time.Millisecond || took > patience/2 {
				t.Errorf("took %s", took)
			}
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) || c.cut && strings.HasSuffix(got, "0\r\n\r\n") {
				t.Errorf("got %q", got)
			}
			if e := next(t, entries); fmt.Sprint(e.status) != c.status || e.err == "" {
				t.Errorf("the log has %+v", e)
			}
		})
	}
}

func TestAFullPoolIs503(t *testing.T) {
	url, heads, _ := working(t)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q]\npool = { connections = 1, wait = \"50ms\" }\nhealth = { failures = 1 }\n", url)+route("up"))
	nc, _ := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-heads
	began := time.Now()
	if got := h.raw(getClose); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took < 50*time.Millisecond || took > patience/2 {
		t.Errorf("after %s", took)
	}
}

// forgetful is an upstream that answers one request on its first connection and closes that when another comes.
func forgetful(t *testing.T) (url string, heads chan string) {
	heads = make(chan string, 10)
	var conns atomic.Int32
	return scripted(t, func(nc net.Conn) {
		first := conns.Add(1) == 1
		r := bufio.NewReader(nc)
		for n := 0; ; n++ {
			head, err := readHead(r)
			if err != nil || first && n == 1 {
				return
			}
			heads <- head
			if strings.Contains(head, "Expect: 100-continue\r\n") {
				_, _ = io.WriteString(nc, "HTTP/1.1 100 Continue\r\n\r\n")
			}
			if strings.HasPrefix(head, "PUT ") {
				body := make([]byte, 5)
				if _, err := io.ReadFull(r, body); err != nil || string(body) != "hello" {
					return
				}
			}
			_, _ = io.WriteString(nc, ok)
		}
	}), heads
}

func TestABodyThatHasNotComeIsNoReasonNotToTryAgain(t *testing.T) {
	for name, c := range map[string]struct {
		expect string
		want   int
		method string
	}{
		"expected": {"Expect: 100-continue\r\n", 200, "PUT"},
		"late":     {"", 200, "PUT"},
		"a POST":   {"", 502, "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			url, heads := forgetful(t)
			h := open(t, route(url))
			nc, r := h.dial()
			send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if _, err := readHead(r); err != nil {
				t.Fatal(err)
			}
			expect(t, r, "ok")
			<-heads
			send(t, nc, c.method+" / HTTP/1.1\r\nHost: a\r\n"+c.expect+"Content-Length: 5\r\n\r\n")
			if c.want == 200 {
				<-heads // the second connection has it
			}
			if c.expect != "" {
				if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 100 ") {
					t.Fatalf("%q %v", head, err)
				}
			}
			if c.want == 200 {
				send(t, nc, "hello")
			}
			if head, err := readHead(r); err != nil || !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", c.want)) {
				t.Errorf("%q %v", head, err)
			}
		})
	}
}
