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

func TestARequestIsReadInPlace(t *testing.T) {
	for _, step := range []int{0, 1, 7} {
		c, _ := connOf("\r\nPOST /a%2fb?x=1?y HTTP/1.1\r\nHost: gw.test:80\r\nX-One: a\r\nx-one:\t b \r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n", step)
		r, body, err := readRequest(c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Method != "POST" || string(r.RawPath) != "/a%2fb" || string(r.RawQuery) != "x=1?y" || string(r.Host) != "gw.test:80" || body != "hello" {
			t.Errorf("step %d: read %s %s ? %s host %s body %q", step, r.Method, r.RawPath, r.RawQuery, r.Host, body)
		}
		if got := r.Header.Fields(); len(got) != 4 || string(got[2].Name) != "x-one" || string(got[2].Value) != "b" {
			t.Errorf("step %d: header is %q", step, got)
		}
		c.Release()
		if r, _, err = readRequest(c); err != nil || r.Proto != core.HTTP10 || r.Method != "GET" {
			t.Errorf("step %d: the request behind it: %v %v", step, r, err)
		}
	}
}

func TestRequestTargets(t *testing.T) {
	for _, c := range []struct{ line, path, query, host string }{
		{"GET / HTTP/1.1", "/", "", "h"},
		{"GET /? HTTP/1.1", "/", "", "h"},
		{"GET http://other.test:81/x?y HTTP/1.1", "/x", "y", "other.test:81"},
		{"GET HTTPS://other.test HTTP/1.1", "/", "", "other.test"},
		{"GET http://other.test?q HTTP/1.1", "/", "q", "other.test"},
		{"GET http://[::1]:80/x HTTP/1.1", "/x", "", "[::1]:80"},
		{"OPTIONS * HTTP/1.1", "*", "", "h"},
		{"OPTIONS http://other.test HTTP/1.1", "*", "", "other.test"},
		{"OPTIONS http://other.test/ HTTP/1.1", "/", "", "other.test"},
		{"OPTIONS http://other.test?q HTTP/1.1", "/", "q", "other.test"},
		{"GET /caf%c3%a9|{} HTTP/1.1", "/caf%c3%a9|{}", "", "h"},
	} {
		conn, _ := connOf(c.line+"\r\nHost: h\r\n\r\n", 0)
		r, _, err := readRequest(conn)
		if err != nil || string(r.RawPath) != c.path || string(r.RawQuery) != c.query || string(r.Host) != c.host {
			t.Errorf("%s: path %q query %q host %q, %v", c.line, r.RawPath, r.RawQuery, r.Host, err)
		}
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	const host = "Host: h\r\n"
	post := func(head, body string) string { return "POST / HTTP/1.1\r\n" + host + head + "\r\n" + body }
	get := func(head string) string { return "GET / HTTP/1.1\r\n" + host + head + "\r\n" }
	for _, c := range []struct {
		name, raw string
		want      int
	}{
		{"two spaces", "GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
		{"tab for space", "GET\t/ HTTP/1.1\r\n" + host + "\r\n", 400},
		{"leading space", " GET / HTTP/1.1\r\n" + host + "\r\n", 400},
		{"trailing space", "GET / HTTP/1.1 \r\n" + host + "\r\n", 400},
		{"no version", "GET /\r\n" + host + "\r\n", 400},
		{"no target", "GET HTTP/1.1\r\n" + host + "\r\n", 400},
		{"two versions", "GET / HTTP/1.1 HTTP/1.1\r\n" + host + "\r\n", 400},
		{"method with colon", "GET: / HTTP/1.1\r\n" + host + "\r\n", 400},
		{"version in lower case", "GET / http/1.1\r\n" + host + "\r\n", 400},
		{"version 1.2", "GET / HTTP/1.2\r\n" + host + "\r\n", 505},
		{"version 2.0", "GET / HTTP/2.0\r\n" + host + "\r\n", 505},
		{"asterisk for GET", "GET * HTTP/1.1\r\n" + host + "\r\n", 400},
		{"relative target", "GET a HTTP/1.1\r\n" + host + "\r\n", 400},
		{"absolute target without host", "GET http:///x HTTP/1.1\r\n" + host + "\r\n", 400},
		{"absolute target with user", "GET http://u@h/x HTTP/1.1\r\n" + host + "\r\n", 400},
		{"fragment", "GET /#a HTTP/1.1\r\n" + host + "\r\n", 400},
		{"control in target", "GET /\x01 HTTP/1.1\r\n" + host + "\r\n", 400},
		{"eighth bit in target", "GET /caf\xc3\xa9 HTTP/1.1\r\n" + host + "\r\n", 400},
		{"eighth bit in query", "GET /?\xff HTTP/1.1\r\n" + host + "\r\n", 400},
		{"CONNECT", "CONNECT a:1 HTTP/1.1\r\n" + host + "\r\n", 501},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400},
		{"two hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", 400},
		{"host with user", "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", 400},
		{"host with rubbish port", "GET / HTTP/1.1\r\nHost: h:8x\r\n\r\n", 400},
		{"host with open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
		{"host of colons", "GET / HTTP/1.1\r\nHost: [:::::]\r\n\r\n", 400},
		{"host of nine groups", "GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8:9]\r\n\r\n", 400},
		{"IPv4 in brackets", "GET / HTTP/1.1\r\nHost: [127.0.0.1]\r\n\r\n", 400},
		{"a name in brackets", "GET http://[abc]/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"a zone", "GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", 400},
		{"host with path", "GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", 400},
		{"bare LF", "GET / HTTP/1.1\n" + host + "\r\n", 400},
		{"bare LF in a field", get("X: a\nY: b\r\n"), 400},
		{"bare CR in a field", get("X: a\rY: b\r\n"), 400},
		{"NUL in a field", get("X: a\x00\r\n"), 400},
		{"DEL in a field", get("X: 1234567\x7f9abcdef\r\n"), 400},
		{"space before colon", get("X : a\r\n"), 400},
		{"folded line", get("X: a\r\n b\r\n"), 400},
		{"first line folded", "GET / HTTP/1.1\r\n X: a\r\n" + host + "\r\n", 400},
		{"no colon", get("hello\r\n"), 400},
		{"empty name", get(": a\r\n"), 400},
		{"name with slash", get("X/A: a\r\n"), 400},
		{"two content types", get("Content-Type: a\r\nContent-Type: b\r\n"), 400},
		{"unknown expectation", get("Expect: 200-ok\r\n"), 417},
		{"unknown expectation in a second line", get("Expect: 100-continue\r\nExpect: 200-ok\r\n"), 417},
		{"length repeated", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400},
		{"length a list", post("Content-Length: 5, 5\r\n", "hello"), 400},
		{"length with sign", post("Content-Length: +5\r\n", "hello"), 400},
		{"length in hex", post("Content-Length: 0x5\r\n", "hello"), 400},
		{"length empty", post("Content-Length:\r\n", "hello"), 400},
		{"length beyond int64", post("Content-Length: 99999999999999999999\r\n", "hello"), 400},
		{"both framings", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
		{"chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
		{"chunked, chunked", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), 400},
		{"identity", post("Transfer-Encoding: identity\r\n", "0\r\n\r\n"), 501},
		{"gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501},
		{"coding with rubbish", post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"), 400},
		{"coding quoted", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), 400},
		{"chunked in 1.0", "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"chunk size with sign", post("Transfer-Encoding: chunked\r\n", "+5\r\nhello\r\n0\r\n\r\n"), 400},
		{"chunk size with prefix", post("Transfer-Encoding: chunked\r\n", "0x5\r\nhello\r\n0\r\n\r\n"), 400},
		{"chunk size empty", post("Transfer-Encoding: chunked\r\n", "\r\nhello\r\n0\r\n\r\n"), 400},
		{"chunk size too long", post("Transfer-Encoding: chunked\r\n", "10000000000000005\r\nhello\r\n0\r\n\r\n"), 400},
		{"chunk size with bare LF", post("Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n"), 400},
		{"chunk longer than said", post("Transfer-Encoding: chunked\r\n", "4\r\nhello\r\n0\r\n\r\n"), 400},
		{"extension with bare LF", post("Transfer-Encoding: chunked\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n"), 400},
		{"extension without name", post("Transfer-Encoding: chunked\r\n", "5;=a\r\nhello\r\n0\r\n\r\n"), 400},
		{"extension too long", post("Transfer-Encoding: chunked\r\n", "5;"+strings.Repeat("a", 2000)+"\r\nhello\r\n0\r\n\r\n"), 400},
		{"trailer without colon", post("Transfer-Encoding: chunked\r\n", "0\r\nhello\r\n\r\n"), 400},
		{"trailer too large", post("Transfer-Encoding: chunked\r\n", "0\r\nA: "+strings.Repeat("a", 20000)+"\r\n\r\n"), 400},
		{"line too long", "GET /" + strings.Repeat("a", 17<<10) + " HTTP/1.1\r\n" + host + "\r\n", 414},
		{"line endless", strings.Repeat("A", 70<<10), 414},
		{"head too large", get(strings.Repeat("X: "+strings.Repeat("a", 1000)+"\r\n", 70)), 431},
		{"too many fields", get(strings.Repeat("X: a\r\n", 600)), 431},
		{"too many connection options", get(strings.Repeat("Connection: a, b\r\n", 51)), 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, step := range []int{0, 3} {
				conn, _ := connOf(c.raw, step)
				_, _, err := readRequest(conn)
				wantStatus(t, err, c.want)
			}
		})
	}
}

func TestWhatEndsTooEarlyIsCut(t *testing.T) {
	for _, raw := range []string{
		"GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
	} {
		conn, _ := connOf(raw, 0)
		if _, _, err := readRequest(conn); err != ErrCut {
			t.Errorf("%.20q: %v, want ErrCut", raw, err)
		}
	}
	conn, _ := connOf("", 0)
	if _, _, err := readRequest(conn); err != io.EOF {
		t.Errorf("nothing at all: %v, want io.EOF", err)
	}
}

func TestChunksAndTrailersAreRead(t *testing.T) {
	const raw = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n" +
		"5;a=b ; c=\"d;\\\"\"\r\nhello\r\n0006\r\n world\r\n000\r\nX-Sum: 1\r\nX-Two: 2\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, step := range []int{0, 1, 10} {
		conn, _ := connOf(raw, step)
		r, body, err := readRequest(conn)
		if err != nil || body != "hello world" {
			t.Fatalf("step %d: %q %v", step, body, err)
		}
		if got := string(r.Body.Trailer.Get("x-two")); got != "2" || r.Body.Trailer.Len() != 2 {
			t.Errorf("step %d: trailers are %q", step, r.Body.Trailer.Fields())
		}
		conn.Release()
		if r, _, err = readRequest(conn); err != nil || string(r.RawPath) != "/next" {
			t.Errorf("step %d: behind the body: %v %v", step, r, err)
		}
	}
}

func TestHeadsSurviveBodiesThatRefillTheBuffer(t *testing.T) {
	for _, pad := range []int{10, 3000, 3900, 4090, 9000, 40000} {
		value := strings.Repeat("v", pad)
		body := strings.Repeat("b", 50_000)
		for _, framed := range []string{"Content-Length: 50000\r\n\r\n" + body, "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nb\r\n", 50_000) + "0\r\nX-T: t\r\n\r\n"} {
			conn, _ := connOf("POST / HTTP/1.1\r\nHost: h\r\nX-Pad: "+value+"\r\n"+framed, 1000)
			r := new(core.Request)
			head, err := conn.ReadRequestHead(limits)
			if err != nil {
				t.Fatal(err)
			}
			f, err := ParseRequest(head, r)
			if err != nil {
				t.Fatal(err)
			}
			var b BodyReader
			b.Start(conn, f, &r.Body.Trailer)
			n := 0
			for buf := make([]byte, 100); ; {
				m, err := b.Read(buf)
				n += m
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if n != len(body) || string(r.Header.Get("x-pad")) != value {
				t.Fatalf("pad %d: %d body bytes, head intact %v", pad, n, string(r.Header.Get("x-pad")) == value)
			}
			if f.Chunked && string(r.Body.Trailer.Get("X-T")) != "t" {
				t.Fatalf("pad %d: trailers %q", pad, r.Body.Trailer.Fields())
			}
		}
	}
}

// FuzzRequest holds the parser against net/http's: where both accept, they read the same request; and what is accepted is never read
// differently when it arrives in other pieces.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		"GET http://b/c HTTP/1.0\r\nConnection: keep-alive, X\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: [::1]:8\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		whole, _ := connOf(string(raw), 0)
		r, body, err := readRequest(whole)
		pieces, _ := connOf(string(raw), max(step&15, 1))
		r2, body2, err2 := readRequest(pieces)
		if (err == nil) != (err2 == nil) || err == nil && (body != body2 || r.Method != r2.Method || !bytes.Equal(r.RawPath, r2.RawPath)) {
			t.Fatalf("pieces change the meaning: %v %v", err, err2)
		}
		if err != nil {
			return
		}
		theirs, theirErr := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(raw, "\r\n"))))
		if theirErr != nil {
			return
		}
		theirBody, theirErr := io.ReadAll(theirs.Body)
		if theirErr != nil {
			return
		}
		if theirs.Method != r.Method || theirs.Host != string(r.Host) || string(theirBody) != body {
			t.Fatalf("net/http reads %s host %q body %q, we %s host %q body %q", theirs.Method, theirs.Host, theirBody, r.Method, r.Host, body)
		}
		if uri := requestURI(r); theirs.RequestURI[0] == '/' && theirs.RequestURI != uri {
			t.Fatalf("net/http reads %q, we %q", theirs.RequestURI, uri)
		}
		sameFields(t, &r.Header, theirs.Header)
		sameFields(t, &r.Body.Trailer, theirs.Trailer)
	})
}

func requestURI(r *core.Request) string {
	if r.HasQuery {
		return string(r.RawPath) + "?" + string(r.RawQuery)
	}
	return string(r.RawPath)
}

// sameFields wants every line that the gateway knows nothing special of to be one of theirs, and as many of them.
func sameFields(t *testing.T, ours *core.Header, theirs http.Header) {
	t.Helper()
	n := 0
	for _, field := range ours.Fields() {
		if field.Kind != core.KindOther {
			continue
		}
		n++
		if !slicesContain(theirs.Values(string(field.Name)), string(field.Value)) {
			t.Fatalf("net/http has %q for %q, we %q", theirs.Values(string(field.Name)), field.Name, field.Value)
		}
	}
	for name, values := range theirs {
		if core.KindOf([]byte(name)) == core.KindOther {
			n -= len(values)
		}
	}
	if n != 0 {
		t.Fatalf("net/http reads %q, we %q", theirs, ours.Fields())
	}
}

func slicesContain(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

func BenchmarkParseRequest(b *testing.B) {
	head := []byte("GET /api/user/123?detail=true HTTP/1.1\r\nHost: 127.0.0.1:21080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n" +
		"Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0b20ifQ.XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX\r\nX-Tenant: blue\r\n")
	r := new(core.Request)
	b.ReportAllocs()
	for b.Loop() {
		r.Header.Reset()
		*r = core.Request{Header: r.Header}
		if _, err := ParseRequest(head, r); err != nil {
			b.Fatal(err)
		}
	}
}
