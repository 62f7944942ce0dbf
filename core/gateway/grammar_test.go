package gateway_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// grammar makes messages as RFC 9112 has them, then spoils some.
type grammar struct{ *rand.Rand }

func newGrammar(seed uint64) grammar { return grammar{rand.New(rand.NewPCG(seed, 9112))} }

// of picks one; the first counts for as many as all others.
func (g grammar) of(list ...string) string {
	if g.IntN(2) == 0 {
		return list[0]
	}
	return list[g.IntN(len(list))]
}

// mostly picks among good ones, and seldom among bad ones.
func (g grammar) mostly(good, bad []string) string {
	if g.maybe(16) {
		return g.of(bad...)
	}
	return g.of(good...)
}

func (g grammar) maybe(n int) bool { return g.IntN(n) == 0 }

// text is made of pieces of an alphabet.
func (g grammar) text(most int, alphabet ...string) string {
	var b strings.Builder
	for range g.IntN(most + 1) {
		b.WriteString(alphabet[g.IntN(len(alphabet))])
	}
	return b.String()
}

// requests are one to three requests on one connection, perhaps spoiled.
func (g grammar) requests() []byte {
	var out []byte
	for range 1 + g.IntN(3) {
		out = append(out, g.request()...)
	}
	if g.maybe(2) {
		out = g.spoil(out)
	}
	return out
}

func (g grammar) request() string {
	var b strings.Builder
	if g.maybe(12) {
		b.WriteString("\r\n")
	}
	method := g.mostly([]string{"POST", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "M-SEARCH", "get"}, []string{"CONNECT", "TRACE", "G\"T", "PRI", ""})
	version := g.mostly([]string{"HTTP/1.1", "HTTP/1.1", "HTTP/1.0"}, []string{"HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1", ""})
	fmt.Fprintf(&b, "%s %s %s\r\n", method, g.target(), version)
	lines := []string{"Host: " + g.mostly([]string{"gw.test", "gw.test:8080", "[::1]:80", "a%41b"}, []string{"u@h", "h/x", "", "a b", "h:8x", "[::1", "h,h"})}
	if g.maybe(20) {
		lines = append(lines, "Host: other")
	}
	for range g.IntN(5) {
		lines = append(lines, g.field())
	}
	framing, body := g.body(method)
	lines = append(lines, framing...)
	g.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

func (g grammar) target() string {
	path := "/" + g.text(6, "a", "b/", "%41", "%2F", "caf%c3%a9", "~", "'", "+", "*", "@", ":", "|", "{}")
	if g.maybe(4) {
		path += g.text(4, "%2e", ".", "..", "/", ";x=1", "\\", "%zz", "%", "%00", "/..;/", "%5c")
	}
	query := g.of("", "?", "?a=1&b=%zz;c", "?"+g.text(4, "?", "&", "=", "%", "/", "\"", "<", "a", "[]"))
	if g.maybe(10) { // no path is a path, too
		return g.of("http://gw.test", "https://other.test:81", "HTTP://[::1]", "*") + query
	}
	return g.mostly([]string{"", "", "", "http://gw.test", "https://other.test:81"}, []string{"http://", "http://u@h", "ftp://h", "*", "#", "a"}) + path + query
}

func (g grammar) field() string {
	switch g.IntN(8) {
	case 0:
		return "Connection: " + g.of("keep-alive", "X-One, TE", "close", "Host", "Content-Length", "X-Forwarded-For", ",, ,", "transfer-encoding", "Upgrade, HTTP2-Settings", "X-User-Id")
	case 1:
		return g.of("X-User-Id", "x_user_id", "X-User.Role", "X-Forwarded-For", "X_Forwarded-Proto", "Forwarded", "X-Real-IP", "x-forwarded-host") + ": 6.6.6.6"
	case 2:
		return g.of("TE: trailers", "TE: gzip", "Trailer: X-T", "Trailer: X-User-Id", "Upgrade: h2c", "Upgrade: websocket", "Keep-Alive: 5", "Proxy-Connection: close",
			"HTTP2-Settings: AAMAAABkAAQAAP__", "Expect: 100-continue", "Via: 1.0 far", "X-Request-Id: me", "X-Trace-Id: mine")
	case 3:
		return g.of("Content-Type: a/b", "Content-Encoding: gzip", "Cookie: a=\"b\"; c=d", "Authorization: Bearer x", "Accept-Encoding: br", "User-Agent: test")
	case 4:
		return "X-Long: " + strings.Repeat("v", g.IntN(6000))
	}
	return g.of("X-One", "x-one", "X-Two", "A!#$%&'*+-.^_`|~9", "X") + ":" + g.text(2, " ", "\t") + g.text(5, "a", "b c", ",", "\"q\"", "\xe9", "\t", ";", ":", "1")
}

// body frames a body in one way, seldom in a wrong one, and gives it.
func (g grammar) body(method string) (lines []string, body string) {
	size := []int{0, 1, 5, 200, 5000, 70_000}[min(g.IntN(8), 5)]
	if size > 200 {
		size += g.IntN(100)
	}
	text := strings.Repeat("GET /in-a-body HTTP/1.1\r\nHost: x\r\n\r\n", size/36+1)[:size]
	switch g.IntN(14) {
	case 0, 1, 2, 7:
		if method == "POST" && g.maybe(2) {
			return []string{"Content-Length: 0"}, ""
		}
		return nil, ""
	case 3, 4, 5, 8:
		return []string{fmt.Sprintf("Content-Length: %d", size)}, text
	case 6:
		wrong := g.of(fmt.Sprintf("%d, %d", size, size), fmt.Sprintf("+%d", size), fmt.Sprintf("0x%x", size), "", "-1", "99999999999999999999", fmt.Sprintf("%d", size+10), fmt.Sprintf("%d ", size))
		lines = []string{"Content-Length: " + wrong}
		if g.maybe(3) {
			lines = append(lines, fmt.Sprintf("Content-Length: %d", size))
		}
		return lines, text
	}
	coding := g.mostly([]string{"chunked", "chunked", "Chunked"}, []string{"chunked, chunked", "gzip, chunked", "identity", "\"chunked\"", "chunked;q=1", "\x0bchunked", "xchunked"})
	lines = []string{g.mostly([]string{"Transfer-Encoding", "transfer-encoding"}, []string{"Transfer_Encoding", "Transfer-Encoding "}) + ": " + coding}
	if g.maybe(20) {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", size))
	}
	return lines, g.chunks(text)
}

func (g grammar) chunks(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(1+g.IntN(len(text)), len(text))
		size := g.of(fmt.Sprintf("%x", n), fmt.Sprintf("%X", n), fmt.Sprintf("0%x", n))
		if g.maybe(30) {
			size = g.of("0x5", "+5", "", "-1", "5 ", "ffffffffffffffff", "g", fmt.Sprintf("%x", n+1))
		}
		b.WriteString(size + g.mostly([]string{"", "", "", ";a=b", " ; a = \"\\\"q\""}, []string{";;", ";a=\""}) + "\r\n" + text[:n] + "\r\n")
		text = text[n:]
	}
	b.WriteString(g.of("0", "0", "00", "0;x") + "\r\n")
	for range g.IntN(3) {
		b.WriteString(g.mostly([]string{"X-T: 1", "X-Sum: abc", "X-User-Id: evil", "Content-Length: 5", "Transfer-Encoding: chunked", "Host: evil"}, []string{"bad", " fold", "X : 1"}) + "\r\n")
	}
	b.WriteString("\r\n")
	return b.String()
}

// dictionary is what messages are spoiled with.
var dictionary = []string{"\r\n", "\n", "\r", "\x00", " ", "\t", ":", ",", ";", "0\r\n\r\n", "\r\n\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Host: evil\r\n",
	" folded\r\n", "chunked", "\x7f", "\xff", "HTTP/1.1", "GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "%00", "#", "=", "\""}

// spoil changes a message in one to three places, most often in its head.
func (g grammar) spoil(b []byte) []byte {
	for range 1 + g.IntN(3) {
		at := g.IntN(len(b) + 1)
		if g.IntN(4) > 0 {
			at = g.IntN(min(len(b), 300) + 1)
		}
		end := min(at+1+g.IntN(8), len(b))
		switch g.IntN(6) {
		case 0:
			if at < len(b) {
				b[at] ^= 1 << g.IntN(8)
			}
		case 1:
			b = append(b[:at:at], b[end:]...)
		case 2:
			b = append(b[:end:end], b[at:]...)
		case 3:
			b = b[:at]
		case 4: // a line twice, or not at all
			if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
				end = at + i + 1
				b = append(b[:end:end], b[at:]...)
			}
		default:
			b = append(append(b[:at:at], dictionary[g.IntN(len(dictionary))]...), b[at:]...)
		}
		if len(b) == 0 {
			return []byte("\r\n")
		}
	}
	return b
}

// answer is what an upstream says to a request of that method, perhaps spoiled.
func (g grammar) answer() []byte {
	var b strings.Builder
	for g.maybe(8) {
		b.WriteString(g.of("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n",
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", "HTTP/1.1 103 X\r\nContent-Length: 5\r\n\r\nhello"))
	}
	status := g.mostly([]string{"200 OK", "200 OK", "200 OK", "204 No Content", "304 Not Modified", "404 Not Found", "500 ", "503", "302 Found", "200 \xe9t\xe9"},
		[]string{"099 X", "600 X", "20 OK", "2000 OK", " 200 OK", "000 X"})
	b.WriteString(g.mostly([]string{"HTTP/1.1", "HTTP/1.1", "HTTP/1.0"}, []string{"HTTP/2.0", "HTTP/1.2", "http/1.1", "SSH-2.0"}) + " " + status + "\r\n")
	var lines []string
	for range g.IntN(5) {
		lines = append(lines, g.answerField())
	}
	framing, body := g.body("GET")
	lines = append(lines, framing...)
	g.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	b.WriteString("\r\n" + body)
	if g.maybe(10) {
		b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Stray: 1\r\n\r\nstray!")
	}
	out := []byte(b.String())
	if g.maybe(2) {
		out = g.spoil(out)
	}
	return out
}

func (g grammar) answerField() string {
	switch g.IntN(4) {
	case 0:
		return g.of("Connection: close", "Connection: keep-alive", "Connection: X-One, close", "Keep-Alive: timeout=5", "Upgrade: h2c", "Trailer: X-T", "TE: x", "Proxy-Connection: x")
	case 1:
		return g.of("Set-Cookie: a=1", "Set-Cookie: b=2, c", "Date: Mon, 02 Jan 2006 15:04:05 GMT", "Content-Type: text/plain", "Location: /x", "ETag: \"x\"", "Content-Encoding: gzip", "Vary: *")
	}
	return g.field()
}
