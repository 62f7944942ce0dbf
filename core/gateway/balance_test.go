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

	ups "github.com/moongate/moongate/core/upstream"
)

// leastConn is an upstream u that goes by requests under way, with more of its settings, and a route to it.
func leastConn(url, more string) string { return routeTo(url, "balance = \"least_conn\"\n"+more) }

// wantActive waits until so many requests are under way at the one endpoint of u.
func (h *house) wantActive(url string, n int) {
	h.t.Helper()
	endpoint := strings.TrimPrefix(url, "http://")
	h.wantMetric(fmt.Sprintf(`moongate_upstream_endpoint_active_requests{endpoint="%s",upstream="u"} %d`, endpoint, n))
}

func TestASocketIsUnderWayUntilItEnds(t *testing.T) {
	url, _, gone := echoer(t)
	h := open(t, leastConn(url, "")+"upgrade = [\"websocket\"]\n")
	first, _ := h.socket()
	second, _ := h.socket()
	h.wantActive(url, 2)
	first.Close()
	<-gone
	h.wantActive(url, 1)
	second.Close()
	<-gone
	h.wantActive(url, 0)
}

func TestAStreamIsUnderWayUntilItEnds(t *testing.T) {
	for _, protocol := range []string{"h1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			more := make(chan struct{})
			stream := func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				<-more
				_, _ = io.WriteString(w, "end")
			}
			url := ""
			if protocol == "h1" {
				url = upstream(t, stream)
			} else {
				url = upstreamH2C(t, stream)
			}
			h := open(t, leastConn(url, fmt.Sprintf("protocol = %q\n", protocol)))
			nc, r := h.dial()
			send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
				t.Fatalf("%q %v", head, err)
			}
			h.wantActive(url, 1)
			close(more)
			h.wantActive(url, 0)
		})
	}
}

// TestEveryEndingLeavesNothingUnderWay asks endpoints that do what they do, and by clients that do what they do.
func TestEveryEndingLeavesNothingUnderWay(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	for _, c := range []struct {
		name, answer, more, request string
	}{
		{"an answer", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "", get},
		{"an error", "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", "", get},
		{"an error that is retried", "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", "retry.attempts = 2\n", get},
		{"nonsense", "what?\r\n\r\n", "", get},
		{"an end without an answer", "", "", get},
		{"an answer that is cut", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "", get},
		{"a time limit", "-", "timeouts = { first_byte = \"50ms\" }\n", get},
		{"a body that is not wanted", "HTTP/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "",
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nConnection: close\r\n\r\nabc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := make(chan struct{})
			defer close(ended)
			url := scripted(t, func(nc net.Conn) {
				if _, err := readHead(bufio.NewReader(nc)); err != nil {
					return
				}
				if c.answer == "-" {
					<-ended
					return
				}
				_, _ = io.WriteString(nc, c.answer)
			})
			h := open(t, leastConn(url, c.more))
			for range 3 {
				if got := h.raw(c.request); !strings.HasPrefix(got, "HTTP/1.1 ") {
					t.Fatalf("got %q", got)
				}
			}
			h.wantActive(url, 0)
		})
	}
	t.Run("a refused connection", func(t *testing.T) {
		h := open(t, leastConn("http://127.0.0.1:1", ""))
		h.raw(get)
		h.wantActive("http://127.0.0.1:1", 0)
	})
	t.Run("a client that leaves", func(t *testing.T) {
		come, gone := make(chan struct{}), make(chan struct{})
		url := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
			close(come)
			<-r.Context().Done()
			close(gone)
		})
		h := open(t, leastConn(url, ""))
		nc, _ := h.dial()
		send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-come
		h.wantActive(url, 1)
		nc.Close()
		<-gone
		h.wantActive(url, 0)
	})
}

func TestRequestsUnderWayOutliveReloads(t *testing.T) {
	more := make(chan struct{})
	url := upstream(t, func(http.ResponseWriter, *http.Request) { <-more })
	h := open(t, leastConn(url, ""))
	nc, _ := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	h.wantActive(url, 1)
	for _, text := range []string{
		leastConn(url, "pool.connections = 7\n"),
		routeTo(url, "balance = \"p2c_ewma\"\n"),
		leastConn(url, "proxy_protocol = \"v1\"\n"), // connections of another kind, at the same endpoint
	} {
		h.write(text)
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
		h.wantActive(url, 1)
	}
	close(more)
	h.wantActive(url, 0)
}

func TestASlowClientIsNotASlowEndpoint(t *testing.T) {
	const pause = 2 * time.Second
	for _, protocol := range []string{"h1", "h2c"} {
		for try := 1; ; try++ { // a machine that stands still for so long tells nothing
			latency := slowUpload(t, protocol, pause)
			if latency > 0 && latency < pause {
				break
			}
			if try == 3 {
				t.Fatalf("%s: the endpoint's latency is %s", protocol, latency)
			}
		}
	}
}

// slowUpload sends a body with a pause in its middle and tells what became of the endpoint's latency.
func slowUpload(t *testing.T, protocol string, pause time.Duration) time.Duration {
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}
	url := ""
	if protocol == "h1" {
		url = upstream(t, echo)
	} else {
		url = upstreamH2C(t, echo)
	}
	h := open(t, routeTo(url, fmt.Sprintf("balance = \"p2c_ewma\"\nprotocol = %q\n", protocol)))
	var up *ups.Upstream
	h.Generation().EachUpstream(func(u *ups.Upstream) { up = u })
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
	h.wantActive(url, 1)
	<-time.After(pause)
	send(t, nc, "cd")
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		t.Fatalf("%q %v", head, err)
	}
	return up.Load(up.Endpoints()[0]).Latency(1) // as of then, not decayed
}
