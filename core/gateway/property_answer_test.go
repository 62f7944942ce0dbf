package gateway_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// liar is an upstream that says what it was told to, whatever it is asked, and then closes or waits. Asked for /next it answers in order.
type liar struct {
	mu     sync.Mutex
	answer []byte
	stays  bool
}

const nextAnswer = "HTTP/1.1 200 OK\r\nX-Next: 1\r\nContent-Length: 4\r\n\r\nnext"

func (l *liar) serve(nc net.Conn) {
	var have []byte
	buf := make([]byte, 4<<10)
	for {
		m, rest, v := readRequest(have)
		if v != whole {
			n, err := nc.Read(buf)
			if have = append(have, buf[:n]...); err != nil {
				return
			}
			continue
		}
		have = slices.Clone(rest)
		if m.start[1] == "/next" {
			if _, err := io.WriteString(nc, nextAnswer); err != nil {
				return
			}
			continue
		}
		l.mu.Lock()
		answer, stays := l.answer, l.stays
		l.mu.Unlock()
		if _, err := nc.Write(answer); err != nil || !stays {
			return
		}
	}
}

// parlour is a gateway with its liar.
type parlour struct {
	h *house
	*liar
}

func newParlour(t testing.TB) *parlour {
	l := &liar{}
	return &parlour{open(t, hastily(t, strings.ReplaceAll(fmt.Sprintf(hasty, "strict", scripted(t, l.serve)), `"1s"`, `"PATIENCE"`))), l}
}

// ask sends a request and gives what came back until the gateway closed, and how that ended.
func (p *parlour) ask(t testing.TB, request string) ([]byte, error) {
	nc, err := net.Dial("tcp", p.h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	return io.ReadAll(patiently{nc})
}

// check has the upstream give those bytes to a request, with another request behind it on the same connection, and judges what the client was
// told. It reports whether the answer was passed on.
func (p *parlour) check(t testing.TB, method string, answer []byte, stays bool) bool {
	p.mu.Lock()
	p.answer, p.stays = answer, stays
	p.mu.Unlock()
	got, end := p.ask(t, method+" /first HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	was, v := finalAnswer(answer, method)
	if was.untilClose && stays && v == whole {
		v = short
	}
	is, rest, got1 := clientsAnswer(got, method)
	own := slices.Contains(is.values("Content-Type"), "application/json") // no upstream says that here
	switch {
	case got1 == wrong:
		t.Errorf("no answer: %.300q", got)
	case got1 == short || end != nil && is.untilClose: // the client sees that it is cut
		if v == whole && len(got) > 0 && !framesBehind(&was) { // on a machine that is busy the connection may have been idle for too long
			t.Errorf("a whole answer was cut (%v): %.300q", end, got)
		}
		return false
	case own:
		if is.status() != 502 && is.status() != 504 {
			t.Errorf("the gateway says %v", is)
		}
	case v != whole:
		t.Errorf("the upstream's answer is not whole, and the client got %v", is)
	default:
		if why := answerDiffers(&was, &is, method); why != "" {
			t.Errorf("%s differ: the upstream said %v\nand the client got %v", why, was, is)
		}
	}
	if next := string(rest); !is.untilClose && next != "" {
		m, more, v := readAnswer(rest, "GET")
		if v != whole || len(more) > 0 || m.body != "next" && m.status() < 500 || m.body == "next" && len(m.values("X-Next")) != 1 {
			t.Errorf("behind it the client got %.300q", rest)
		}
	} else if !slices.Contains(lowered(is.values("Connection")), "close") {
		t.Errorf("the next request got no answer, and nobody said so: %.300q", got)
	}
	return !own
}

// framesBehind tells whether a trailer section speaks of framing, which it must not (RFC 9110 section 6.5.1); the gateway may call it malformed.
func framesBehind(m *message) bool {
	return slices.ContainsFunc(m.trailer, func(line [2]string) bool {
		name := strings.ToLower(line[0])
		return name == "content-length" || name == "transfer-encoding" || name == "connection"
	})
}

func lowered(list []string) []string {
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// finalAnswer is the answer behind interim ones, as a strict reader that waits for the end of the connection has it.
func finalAnswer(b []byte, method string) (m message, v verdict) {
	for {
		m, rest, v := readAnswer(b, method)
		if v != whole || m.status() >= 200 || m.status() == 101 {
			if m.status() == 101 {
				v = wrong // nobody asked
			}
			return m, v
		}
		b = rest
	}
}

// clientsAnswer is finalAnswer for what the gateway says, with what is behind it.
func clientsAnswer(b []byte, method string) (m message, rest []byte, v verdict) {
	if len(b) == 0 {
		return m, nil, short
	}
	for {
		if m, rest, v = readAnswer(b, method); v != whole || m.status() >= 200 {
			return m, rest, v
		}
		b = rest
	}
}

// answerDiffers tells in what an answer means something else than the upstream's.
func answerDiffers(was, is *message, method string) string {
	switch {
	case was.status() != is.status():
		return "statuses"
	case is.start[0] != "HTTP/1.1":
		return "versions"
	case was.body != is.body:
		return "bodies"
	case !slices.Equal(kept(was), kept(is)):
		return fmt.Sprintf("fields %q", kept(was))
	}
	for _, line := range is.trailer {
		if !slices.Contains(was.trailer, line) || gone(line[0]) && line[0] != "X-User-Id" {
			return "trailers"
		}
	}
	return ""
}

// kept are the lines of an answer that go from one end to the other. A date is added where there is none.
func kept(m *message) (lines []string) {
	nominated := map[string]bool{}
	for _, list := range m.values("Connection") {
		for _, name := range strings.Split(list, ",") {
			nominated[strings.ToLower(strings.Trim(name, " \t"))] = true
		}
	}
	for _, f := range m.fields {
		switch name := strings.ToLower(f[0]); name {
		case "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "date":
		default:
			if !nominated[name] {
				lines = append(lines, f[0]+": "+f[1])
			}
		}
	}
	return lines
}

func TestClientsGetOneWellFormedAnswerWhateverUpstreamsSend(t *testing.T) {
	rounds(t, func(t *testing.T, seeds []uint64) {
		p := newParlour(t)
		passed := 0
		for _, seed := range seeds {
			g := newGrammar(seed)
			answer, method, stays := g.answer(), g.of("GET", "HEAD"), g.IntN(3) > 0
			if p.check(t, method, answer, stays) {
				passed++
			}
			if t.Failed() {
				t.Fatalf("MOONGATE_SEED=%d %s, stays: %v\n%q", seed, method, stays, ends(answer))
			}
		}
		if len(seeds) > 50 && passed < len(seeds)/20 {
			t.Errorf("only %d answers of %d were passed on: this tells nothing", passed, len(seeds))
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(newGrammar(seed).answer(), seed%3 == 0, seed%2 == 0)
	}
	p := newParlour(f)
	f.Fuzz(func(t *testing.T, answer []byte, head, stays bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		if len(answer) < 64<<10 {
			p.check(t, method, answer, stays)
		}
	})
}

func TestBytesBehindAnAnswerAreNobodysAnswer(t *testing.T) {
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(borrowed.Close)
	for _, secure := range []bool{false, true} {
		for _, size := range []int{2, 3000, 5000, 70_000, 300_000} {
			answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstray!", size, strings.Repeat("x", size))
			url := scripted(t, func(nc net.Conn) {
				if secure {
					nc = tls.Server(nc, &tls.Config{Certificates: borrowed.TLS.Certificates})
				}
				r := bufio.NewReader(nc)
				for {
					head, err := readHead(r)
					if err != nil {
						return
					}
					said := nextAnswer
					if strings.HasPrefix(head, "GET /first ") {
						said = answer
					}
					if _, err := io.WriteString(nc, said); err != nil {
						return
					}
				}
			})
			more := ""
			if secure {
				url, more = strings.Replace(url, "http://", "https://", 1), "[upstream.tls]\ninsecure = true\n"
			}
			h := open(t, routeTo(url, more))
			got := h.raw("GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if strings.Contains(got, "stray!") || !strings.HasSuffix(got, "next") {
				t.Errorf("TLS %v, %d bytes: the client got %d bytes that end in %q", secure, size, len(got), got[max(0, len(got)-300):])
			}
		}
	}
}
