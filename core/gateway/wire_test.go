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

// recorder is an upstream that keeps the raw head of each request and answers with a fixed text.
func recorder(t *testing.T, answer string) (url string, heads chan string) {
	heads = make(chan string, 100)
	return scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		for {
			head, err := readHead(r)
			if err != nil {
				return
			}
			heads <- head
			if _, err := io.WriteString(nc, answer); err != nil {
				return
			}
		}
	}), heads
}

func readHead(r *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if head.WriteString(line); line == "\r\n" {
			return head.String(), nil
		}
	}
}

// patience is how long a test waits for what will come, on the slowest of machines.
const patience = time.Minute

// dial opens a connection, and a reader whose reads have the patience of a test.
func (h *house) dial() (net.Conn, *bufio.Reader) {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { nc.Close() })
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	return nc, bufio.NewReader(patiently{nc})
}

// patiently gives each read the patience of a test, however many there are.
type patiently struct{ deadlined }

type deadlined interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

func (p patiently) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(patience))
	return p.deadlined.Read(b)
}

func send(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, r *bufio.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(r, got)
	if string(got[:n]) != want {
		t.Fatalf("got %q (%v), want %q", got[:n], err, want)
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestHopByHopHeadersEndAtTheGateway(t *testing.T) {
	url, heads := recorder(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nX-Public: 1\r\n\r\nok")
	h := open(t, route(url))
	got := h.raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: \r\nConnection: close, X-Secret, X-Forwarded-For, Host\r\nX-Secret: 1\r\nKeep-Alive: 5\r\n" +
		"Proxy-Connection: x\r\nTE: gzip, trailers\r\nUpgrade: h2c\r\nX-Kept: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\r\n")
	if strings.Contains(got, "X-Private") || strings.Contains(got, "Keep-Alive") || !strings.Contains(got, "X-Public: 1") {
		t.Errorf("the client got %q", got)
	}
	head := <-heads
	for _, gone := range []string{"X-Secret", "Keep-Alive", "Proxy-Connection", "gzip", "Upgrade", "6.6.6.6", "https", "close"} {
		if strings.Contains(head, gone) {
			t.Errorf("the upstream got %s:\n%s", gone, head)
		}
	}
	for _, want := range []string{"X-Kept: 1\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: http\r\n", "X-Forwarded-Host: gw\r\n", "Via: 1.1 moongate\r\n", "TE: trailers\r\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("the upstream did not get %q:\n%s", want, head)
		}
	}
}

func TestIdentityHeadersNeverComeFromAClient(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, "[http]\nidentity_headers = [\"X-User-Id\", \"X-Tenant\"]\n"+route(url))
	h.raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nX-User-Id: a\r\nx_user_id: b\r\nX-USER_ID: c\r\nx-tenant: d\r\nX-User-Id2: kept\r\n\r\n")
	head := strings.ToLower(<-heads)
	if strings.Contains(head, "x-user-id:") || strings.Contains(head, "x_user") || strings.Contains(head, "x-user_id") || strings.Contains(head, "tenant") {
		t.Errorf("an identity header got through:\n%s", head)
	}
	if !strings.Contains(head, "x-user-id2: kept") {
		t.Errorf("another header did not:\n%s", head)
	}
}

func TestForwardedForIsWalkedFromTheRight(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, "[http]\ntrusted_proxies = [\"127.0.0.0/8\", \"10.0.0.0/8\"]\n"+strings.Replace(route(url), "path = ", "client = [\"6.6.6.6\"]\npath = ", 1))
	got := h.raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 6.6.6.6, 10.0.0.9\r\nX-Forwarded-Proto: https\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatalf("the route for client 6.6.6.6 did not take it: %s", got)
	}
	if head := <-heads; !strings.Contains(head, "X-Forwarded-For: 1.1.1.1, 6.6.6.6, 10.0.0.9, 127.0.0.1\r\n") || !strings.Contains(head, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestAnswersWithoutBodiesHaveNone(t *testing.T) {
	for _, c := range []struct{ method, answer, want, not string }{
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "Content-Length: 1234\r\n", "Transfer"},
		{"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 OK", "0\r\n\r\n"},
		{"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "204 No Content", "Content-Length"},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n", "ETag: \"x\"", "Transfer"},
	} {
		accepted := make(chan struct{}, 10)
		url := scripted(t, func(nc net.Conn) {
			accepted <- struct{}{}
			r := bufio.NewReader(nc)
			for i := 0; ; i++ {
				if _, err := readHead(r); err != nil {
					return
				}
				if i == 0 {
					_, _ = io.WriteString(nc, c.answer)
				} else {
					_, _ = io.WriteString(nc, ok)
				}
			}
		})
		h := open(t, route(url))
		nc, r := h.dial()
		began := time.Now()
		send(t, nc, c.method+" / HTTP/1.1\r\nHost: a\r\n\r\n")
		head, err := readHead(r)
		if err != nil || !strings.Contains(head, c.want) || strings.Contains(head, c.not) {
			t.Errorf("%s %.20q: head %q, %v", c.method, c.answer, head, err)
		}
		if took := time.Since(began); took > patience/2 { // the gateway waits for no body
			t.Errorf("the answer took %s", took)
		}
		send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if head, err = readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
			t.Errorf("the next request on the connection: %q %v", head, err)
		}
		if len(accepted) != 1 {
			t.Errorf("%d connections to the upstream, want the first to be used again", len(accepted))
		}
	}
}

func TestEventsArriveAsTheyAreSent(t *testing.T) {
	next := make(chan string)
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.(http.Flusher).Flush()
		for {
			select {
			case event, more := <-next:
				if !more {
					return
				}
				_, _ = io.WriteString(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	h := open(t, route(url))
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if head, err := readHead(r); err != nil || !strings.Contains(head, "event-stream") {
		t.Fatalf("the head waits for the first event: %q %v", head, err)
	}
	for _, event := range []string{"data: 1\n\n", "data: 2\n\n"} {
		next <- event
		expect(t, r, fmt.Sprintf("%x\r\n%s\r\n", len(event), event))
	}
	close(next)
	expect(t, r, "0\r\n\r\n")
}

func TestInterimAnswersPass(t *testing.T) {
	url, _ := recorder(t, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	h := open(t, route(url))
	got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\n") {
		t.Errorf("got %q", got)
	}
	if got := h.raw("GET / HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("a client of 1.0 got %q", got)
	}
}

func TestMalformedAnswersAre502(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 000 X\r\n\r\n", "SSH-2.0\r\n\r\n",
		"HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
	} {
		url, heads := recorder(t, answer)
		h := open(t, route(url))
		got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n") || !strings.Contains(got, `{"code":502,`) || len(heads) != 1 {
			t.Errorf("%.30q gave %q after %d requests", answer, got, len(heads))
		}
	}
}

func TestLargeHeadsPassBothWaysByDefault(t *testing.T) {
	cookie := strings.Repeat("c", 30<<10)
	url, heads := recorder(t, "HTTP/1.1 200 OK\r\nSet-Cookie: a="+cookie+"\r\nSet-Cookie: b=1, 2\r\nSet-Cookie: b=3\r\nContent-Length: 2\r\n\r\nok")
	h := open(t, route(url))
	got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: " + cookie + "\r\n\r\n")
	if !strings.Contains(got, "Set-Cookie: a="+cookie+"\r\nSet-Cookie: b=1, 2\r\nSet-Cookie: b=3\r\n") {
		t.Errorf("the client got %.100q", got)
	}
	if !strings.Contains(<-heads, cookie) {
		t.Error("the upstream did not get the cookie")
	}
	url, _ = recorder(t, "HTTP/1.1 200 OK\r\nSet-Cookie: a="+strings.Repeat("c", 300<<10)+"\r\nContent-Length: 2\r\n\r\nok")
	h = open(t, route(url))
	if got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502") {
		t.Errorf("a head beyond the limit gave %.100q", got)
	}
}

func TestAnUpstreamsCutIsSeen(t *testing.T) {
	for _, c := range []struct{ answer, proto string }{
		{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "HTTP/1.1"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.0"},
	} {
		url := scripted(t, func(nc net.Conn) {
			_, _ = readHead(bufio.NewReader(nc))
			_, _ = io.WriteString(nc, c.answer)
		})
		h := open(t, route(url))
		nc, r := h.dial()
		send(t, nc, "GET / "+c.proto+"\r\nHost: a\r\n\r\n")
		all, err := io.ReadAll(r)
		body := string(all[strings.Index(string(all), "\r\n\r\n")+4:])
		clean := err == nil && (c.proto == "HTTP/1.0" || strings.HasSuffix(body, "0\r\n\r\n"))
		if clean {
			t.Errorf("%s of %.60q ended cleanly: %q", c.proto, c.answer, all)
		}
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set(http.TrailerPrefix+"X-Sum", r.Trailer.Get("X-In")+"+out")
		_, _ = io.WriteString(w, "body")
	})
	h := open(t, route(url))
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-In\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-In: in\r\nContent-Length: 9\r\n\r\n")
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		t.Fatalf("%q %v", head, err)
	}
	expect(t, r, "4\r\nbody\r\n0\r\nX-Sum: in+out\r\n\r\n")
}

func TestABodyIsOnlyAskedForWhenSomebodyWantsIt(t *testing.T) {
	for _, c := range []struct{ name, first, want string }{
		{"upstream wants it", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"upstream refuses", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 403 Forbidden\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := scripted(t, func(nc net.Conn) {
				r := bufio.NewReader(nc)
				head, _ := readHead(r)
				if !strings.Contains(head, "Expect: 100-continue\r\n") {
					return
				}
				_, _ = io.WriteString(nc, c.first)
				body := make([]byte, 5)
				if _, err := io.ReadFull(r, body); err == nil {
					_, _ = fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%s", body)
				}
			})
			h := open(t, route(url))
			nc, r := h.dial()
			send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
			expect(t, r, c.want)
			if strings.Contains(c.first, "403") {
				return
			}
			send(t, nc, "hello")
			if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
				t.Fatalf("%q %v", head, err)
			}
			expect(t, r, "hello")
		})
	}
}

func TestAnEarlyAnswerReachesAClientThatIsStillSending(t *testing.T) {
	url := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = io.WriteString(nc, "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\n\r\nbig")
	})
	h := open(t, route(url))
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 1000))
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 413") {
		t.Fatalf("%q %v", head, err)
	}
	expect(t, r, "big")
}

func TestUploadsReachTheUpstreamWhileTheyAreSent(t *testing.T) {
	got := make(chan string)
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		_, _ = readHead(r)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			got <- line
			if line == "0\r\n" {
				_, _ = io.WriteString(nc, ok)
			}
		}
	})
	h := open(t, route(url))
	nc, _ := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, piece := range []string{"one", "three"} {
		send(t, nc, fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece))
		if size, text := <-got, <-got; text != piece+"\r\n" {
			t.Fatalf("the upstream got %q %q, want %q", size, text, piece)
		}
	}
	nc.Close()
}

func TestABadChunkIsTheClientsFault(t *testing.T) {
	cut := make(chan error, 1)
	url := scripted(t, func(nc net.Conn) {
		_, err := io.ReadAll(nc)
		cut <- err
	})
	h := open(t, route(url))
	got := h.raw("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 400") || !strings.Contains(got, "Connection: close") {
		t.Errorf("got %q", got)
	}
	<-cut
}

func TestLocationsOfTheUpstreamLeadBackThroughTheGateway(t *testing.T) {
	var self string
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", self+"/next?x=1")
		w.WriteHeader(302)
	})
	self = url
	h := open(t, strings.Replace(route(url), "path = \"/**\"", "path = \"/api/**\"\nstrip_prefix = true", 1))
	if got := h.raw("GET /api/first HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "Location: http://gw.test/api/next?x=1\r\n") {
		t.Errorf("got %q", got)
	}
}
