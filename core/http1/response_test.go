package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

func readResponse(c *Conn, method string) (*core.Response, Framing, string, error) {
	w := new(core.Response)
	head, err := c.ReadResponseHead(64 << 10)
	if err != nil {
		return w, Framing{}, "", err
	}
	f, err := ParseResponse(head, method, w)
	if err != nil {
		return w, f, "", err
	}
	var body BodyReader
	body.Start(c, f, &w.Body.Trailer)
	data, err := io.ReadAll(&body)
	return w, f, string(data), err
}

func TestAnswersAreFramedAsTheyShould(t *testing.T) {
	for _, c := range []struct {
		name, method, raw, body string
		close                   bool
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", false},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "hi", false},
		{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nhi", "hi", true},
		{"no reason", "GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "", false},
		{"no reason, no space", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "", false},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "", false},
		{"HEAD chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", false},
		{"204 with a length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "", false},
		{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", false},
		{"connection close", "GET", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nhi", "hi", true},
		{"1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", true},
		{"1.0 kept alive", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", "hi", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, step := range []int{0, 1} {
				conn, _ := connOf(c.raw, step)
				w, f, body, err := readResponse(conn, c.method)
				if err != nil || body != c.body || f.Close != c.close {
					t.Errorf("status %d body %q close %v, %v", w.Status, body, f.Close, err)
				}
			}
		})
	}
}

func TestNonsenseIsNoAnswer(t *testing.T) {
	for _, raw := range []string{
		"HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 600 X\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 200\tOK\r\n\r\n", "SSH-2.0-x\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "HTTP/1.1 200 O\x00K\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX" + strings.Repeat("x", 70<<10) + ": a\r\n\r\n",
	} {
		conn, _ := connOf(raw, 0)
		if w, _, body, err := readResponse(conn, "GET"); err == nil {
			t.Errorf("%.40q was taken as %d %q", raw, w.Status, body)
		}
	}
}

func TestWhatIsSentIsReadBackAsItWas(t *testing.T) {
	for _, size := range []int{0, 1, 200, 8 << 10, 8<<10 + 1, 63 << 10, 64 << 10, 300_000} {
		for _, chunked := range []bool{false, true} {
			for _, step := range []int{0, 777} {
				text := strings.Repeat("0123456789", size/10+1)[:size]
				framing := Framing{Length: int64(size)}
				if chunked {
					framing = Framing{Length: -1, Chunked: true}
				}
				var raw []byte
				if chunked {
					raw = AppendLastChunk(AppendChunk(nil, []byte(text)), new(core.Header))
				} else {
					raw = []byte(text)
				}
				from, _ := connOf(string(raw), step)
				var src BodyReader
				var body core.Body
				src.Start(from, framing, &body.Trailer)
				body.Attach(src.Source(), framing.Length)
				to, wire := connOf("", 0)
				head := append(to.Begin(), "HTTP/1.1 200 OK\r\n"...)
				if chunked {
					head = AppendChunked(head)
				} else {
					head = AppendLength(head, int64(size))
				}
				n, err := SendBody(to, append(head, "\r\n"...), &body, chunked)
				if err != nil || n != int64(size) {
					t.Fatalf("size %d chunked %v: sent %d, %v", size, chunked, n, err)
				}
				back, _ := connOf(wire.sent.String(), 0)
				if _, _, got, err := readResponse(back, "GET"); err != nil || got != text {
					t.Fatalf("size %d chunked %v step %d: %d bytes came back, %v", size, chunked, step, len(got), err)
				}
			}
		}
	}
}

func TestABodyThatCannotBeReadHasNoCleanEnd(t *testing.T) {
	from, _ := connOf("5\r\nhello\r\n5\r\nwor", 0)
	var src BodyReader
	var body core.Body
	src.Start(from, Framing{Length: -1, Chunked: true}, &body.Trailer)
	body.Attach(src.Source(), -1)
	to, wire := connOf("", 0)
	_, err := SendBody(to, append(to.Begin(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"...), &body, true)
	if _, ok := err.(*ReadError); !ok {
		t.Errorf("the error is %v, want a ReadError", err)
	}
	if got := wire.sent.String(); !strings.Contains(got, "hello") || strings.Contains(got, "\r\n0\r\n") {
		t.Errorf("sent %q", got)
	}
}

// FuzzResponse holds the parser against net/http's: where both accept an answer they read the same.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.0 404 \r\nConnection: keep-alive\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	} {
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		conn, _ := connOf(string(raw), 5)
		w, _, body, err := readResponse(conn, method)
		if err != nil {
			return
		}
		theirs, theirErr := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: method})
		if theirErr != nil || theirs.StatusCode < 200 {
			return
		}
		theirBody, theirErr := io.ReadAll(theirs.Body)
		if theirErr != nil {
			return
		}
		if theirs.StatusCode != w.Status || string(theirBody) != body {
			t.Fatalf("net/http reads %d %q, we %d %q", theirs.StatusCode, theirBody, w.Status, body)
		}
		sameFields(t, &w.Header, theirs.Header)
		sameFields(t, &w.Body.Trailer, theirs.Trailer)
	})
}
