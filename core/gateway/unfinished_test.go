package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

// early is an upstream that answers a request whose head it has read, and reads on.
func early(t *testing.T, answer string) string {
	return scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		_, _ = readHead(r)
		_, _ = io.WriteString(nc, answer)
		_, _ = io.Copy(io.Discard, r)
	})
}

func TestAnAnswerToHalfARequestSaysThatTheConnectionCloses(t *testing.T) {
	refuse := func(x *core.Exchange) (*core.Reply, error) {
		if string(x.Request.Path) == "/refused" {
			return core.ErrorReply(core.FromFilter, 401, "no"), nil
		}
		return nil, nil
	}
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	gone := "http://" + dead.Addr().String()
	dead.Close()
	config := ""
	for path, url := range map[string]string{
		"/refused": gone, "/gone": gone,
		"/413": early(t, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"),
		"/200": early(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
		"/204": early(t, "HTTP/1.1 204 No Content\r\n\r\n"),
	} {
		config += fmt.Sprintf("[[route]]\nname = %q\npath = %q\nupstream = %q\n", path, path, url)
	}
	h := open(t, config, through(&stage{request: refuse}))
	for _, path := range []string{"/refused", "/gone", "/413", "/200", "/204", "/nowhere"} {
		for _, half := range []string{
			"Content-Length: 10\r\n\r\nhe", "Content-Length: 1000000\r\n\r\nhe", "Content-Length: 10\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "Transfer-Encoding: chunked\r\n\r\n",
		} {
			nc, r := h.dial()
			send(t, nc, "POST "+path+" HTTP/1.1\r\nHost: a\r\n"+half)
			head, err := readHead(r)
			if err != nil || !strings.Contains(head, "\r\nConnection: close\r\n") {
				t.Errorf("%s with %q: %q %v", path, half, head, err)
				continue
			}
			_, _ = io.Copy(io.Discard, r) // and it does, in time
		}
	}
}

func TestAnAnswerToAWholeRequestKeepsTheConnection(t *testing.T) {
	refuse := func(x *core.Exchange) (*core.Reply, error) {
		if string(x.Request.Path) == "/refused" {
			return core.ErrorReply(core.FromFilter, 401, "no"), nil
		}
		return nil, nil
	}
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(404)
	})
	h := open(t, route(url), through(&stage{request: refuse}))
	nc, r := h.dial()
	for _, path := range []string{"/refused", "/else"} {
		for _, size := range []int{0, 5, 60_000, 500_000} {
			for _, framing := range []string{"Content-Length: %d\r\n\r\n%s", "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"} {
				if size > 60_000 && path == "/refused" || size == 0 && framing[0] == 'T' {
					continue // too much to be read for nothing; no chunk at all
				}
				send(t, nc, "POST "+path+" HTTP/1.1\r\nHost: a\r\n"+fmt.Sprintf(framing, size, strings.Repeat("x", size)))
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.Close || resp.StatusCode/100 != 4 {
					t.Fatalf("%s with %d bytes, %.7s: %v %v", path, size, framing, resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		}
	}
}

func TestAConversationIsNotTakenForAnEarlyAnswer(t *testing.T) {
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		_, _ = readHead(r)
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
		_, _ = io.CopyN(nc, r, 5)
		_, _ = io.Copy(io.Discard, r)
	})
	h := open(t, route(url))
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
	head, err := readHead(r)
	if err != nil || strings.Contains(head, "Connection: close") {
		t.Fatalf("%q %v", head, err)
	}
	send(t, nc, "hello")
	expect(t, r, "hello")
}
