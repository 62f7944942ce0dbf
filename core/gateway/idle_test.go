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

func TestAConnectionThatRestedIsServedOn(t *testing.T) {
	url := scripted(t, func(nc net.Conn) { _, _ = io.Copy(answering{nc}, nc) })
	h := open(t, route(url))
	nc, r := h.dial()
	for i := range 3 {
		if i > 0 {
			time.Sleep(1700 * time.Millisecond) // longer than an idle connection keeps its buffers
		}
		for _, piece := range []string{"G", "ET / HTTP/1.1\r\nHo", "st: a\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n"} {
			send(t, nc, piece)
			time.Sleep(5 * time.Millisecond)
		}
		if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
			t.Fatalf("after a rest: %q %v", head, err)
		}
		expect(t, r, "ok")
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, "[http]\nidle_timeout = \"200ms\"\n"+route(url))
	for _, asks := range []bool{false, true} {
		began := time.Now()
		nc, r := h.dial()
		if asks {
			began = time.Now()
			send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if _, err := readHead(r); err != nil {
				t.Fatal(err)
			}
			expect(t, r, "ok")
		}
		rest, err := io.ReadAll(r)
		if took := time.Since(began); err != nil || len(rest) > 0 || took < 150*time.Millisecond || took > patience/2 {
			t.Errorf("after a request %v: %q %v after %s", asks, rest, err, took)
		}
	}
}

func TestAHeadInDropsIs408(t *testing.T) {
	h := open(t, "[http]\nhead_timeout = \"200ms\"\n"+route("http://127.0.0.1:1"))
	nc, r := h.dial()
	go func() {
		for _, err := io.WriteString(nc, "GET / HTTP/1.1\r\n"); err == nil; _, err = io.WriteString(nc, "X") {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	began := time.Now()
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 408 ") || !strings.Contains(head, "Connection: close\r\n") {
		t.Errorf("%q %v", head, err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("after %s", took)
	}
	nc.Close()
}

func TestOldClientsAreServed(t *testing.T) {
	sized, sizedHeads := recorder(t, ok)
	chunked, _ := recorder(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
	h := open(t, strings.Replace(strings.Replace(route(sized), "/**", "/sized", 1), "all", "sized", 1)+route(chunked))
	for _, c := range []struct {
		request string
		stays   bool
	}{
		{"GET /sized HTTP/1.0\r\n\r\n", false},
		{"GET /sized HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
		{"GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false},
		{"GET /sized HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
		{"GET /sized HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true},
	} {
		nc, r := h.dial()
		send(t, nc, c.request)
		head, err := readHead(r)
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || strings.Contains(head, "Transfer-Encoding") {
			t.Fatalf("%q gave %q %v", c.request, head, err)
		}
		if strings.Contains(head, "Connection: close") == c.stays {
			t.Errorf("%q: the head says %q", c.request, head)
		}
		expect(t, r, "ok")
		send(t, nc, "GET /sized HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := readHead(r); (err == nil) != c.stays {
			t.Errorf("%q: the next request got %v", c.request, err)
		}
		nc.Close()
	}
	if head := <-sizedHeads; !strings.Contains(head, " HTTP/1.1\r\nHost: "+strings.TrimPrefix(sized, "http://")+"\r\n") || !strings.Contains(head, "Via: 1.0 moongate\r\n") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestAnOldClientWithoutHostHasTheEndpointsName(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nhost = \"client\"\nendpoints = [%q]\n", url)+route("up"))
	h.raw("GET / HTTP/1.0\r\n\r\n")
	if head := <-heads; !strings.Contains(head, "Host: "+strings.TrimPrefix(url, "http://")+"\r\n") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestASlowBodyIsNoSlowRequest(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	h := open(t, "[http]\nbody_idle = \"2s\"\nhead_timeout = \"2s\"\n"+route(url)+"[route.timeouts]\nfirst_byte = \"2s\"\n")
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n")
	for range 8 {
		time.Sleep(300 * time.Millisecond) // in all longer than each limit
		send(t, nc, "x")
	}
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		t.Fatalf("%q %v", head, err)
	}
	expect(t, r, "xxxxxxxx")
}

func TestUnreadBodiesDoNotDisturbTheNextRequest(t *testing.T) {
	h := open(t, route("http://127.0.0.1:1"))
	for _, body := range []string{"Content-Length: 5\r\n\r\nGET /", "Transfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\nT: v\r\n\r\n", "Content-Length: 60000\r\n\r\n" + strings.Repeat("x", 60_000)} {
		nc, r := h.dial()
		send(t, nc, "POST /a/../b HTTP/1.1\r\nHost: a\r\n"+body+"GET /a//b HTTP/1.1\r\nHost: a\r\n\r\n")
		for range 2 {
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != 400 {
				t.Fatalf("%.40q: %v", body, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		nc.Close()
	}
}

func TestAnEndlessUnreadBodyEndsTheConnection(t *testing.T) {
	h := open(t, route("http://127.0.0.1:1"))
	nc, r := h.dial()
	send(t, nc, "POST /a/../b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	go func() {
		for _, err := io.WriteString(nc, "1\r\nx\r\n"); err == nil; _, err = io.WriteString(nc, strings.Repeat("1\r\nx\r\n", 1000)) {
			time.Sleep(time.Millisecond)
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil || resp.StatusCode != 400 {
		t.Fatal(err)
	}
	began := time.Now()
	_, _ = io.Copy(io.Discard, r)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("the connection stayed for %s", took)
	}
	nc.Close()
}
