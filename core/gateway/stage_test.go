package gateway_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
)

// stage is a pipeline stage of one filter made of functions; nil ones do nothing.
type stage struct {
	name     string
	request  func(*core.Exchange) (*core.Reply, error)
	response func(*core.Exchange) error
	log      func(*core.Exchange)

	at int // place of its filter in the pipeline
}

func (s *stage) Name() string { return s.name }

func (s *stage) Request(x *core.Exchange) (*core.Reply, error) {
	x.Turn++
	if s.request == nil {
		return nil, nil
	}
	return s.request(x)
}

func (s *stage) Response(x *core.Exchange) error {
	if x.Route != nil {
		if x.Turn <= s.at {
			return nil
		}
		x.Turn = s.at
	}
	if s.response == nil {
		return nil
	}
	return s.response(x)
}

func (s *stage) Log(x *core.Exchange) {
	if s.log != nil {
		s.log(x)
	}
}

type pipeline []core.Stage

func (p pipeline) Stages(*core.Route) []core.Stage { return p }

// through gives a gateway a pipeline of these stages.
func through(stages ...*stage) func(*gateway.Options) {
	var p pipeline
	for i, s := range stages {
		s.at = i
		p = append(p, s)
	}
	return func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) { return gateway.Built{Pipeline: p}, nil }
	}
}

// entry is what a log function saw.
type entry struct {
	status   int
	method   string
	source   string
	upstream string
	err      string
	bytesIn  int64
	bytesOut int64
}

// watching is a stage that hands on what it sees.
func watching() (*stage, chan entry) {
	entries := make(chan entry, 1000)
	return &stage{name: "log", log: func(x *core.Exchange) {
		e := entry{status: x.Response.Status, method: x.Request.Method, source: x.Response.Source.String(), upstream: x.Upstream,
			bytesIn: x.Request.Body.Taken(), bytesOut: x.Response.BodySent}
		if x.Err != nil {
			e.err = x.Err.Error()
		}
		entries <- e
	}}, entries
}

func next(t *testing.T, entries chan entry) entry {
	t.Helper()
	select {
	case e := <-entries:
		return e
	case <-time.After(patience):
		t.Fatal("no log entry")
	}
	return entry{}
}

// steps records which functions ran.
type steps struct {
	mu   sync.Mutex
	list []string
}

func (s *steps) add(step string) {
	s.mu.Lock()
	s.list = append(s.list, step)
	s.mu.Unlock()
}

func (s *steps) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.list, " ")
}

// recorded is a stage that notes its turns.
func (s *steps) recorded(name string) *stage {
	return &stage{name: name,
		request:  func(*core.Exchange) (*core.Reply, error) { s.add(name + ">"); return nil, nil },
		response: func(*core.Exchange) error { s.add("<" + name); return nil },
		log:      func(*core.Exchange) { s.add(name + "!") },
	}
}

const getClose = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

func TestStagesRunInOrderAndSeeTheAnswerInReverse(t *testing.T) {
	url, _ := recorder(t, ok)
	var s steps
	h := open(t, route(url), through(s.recorded("a"), s.recorded("b"), s.recorded("c")))
	h.raw(getClose)
	if got := s.String(); got != "a> b> c> <c <b <a a! b! c!" {
		t.Errorf("ran %s", got)
	}
}

func TestAnEarlyAnswerPassesThoseWhoseTurnHadCome(t *testing.T) {
	url, heads := recorder(t, ok)
	var s steps
	b := s.recorded("b")
	b.request = func(x *core.Exchange) (*core.Reply, error) {
		s.add("b>")
		r := core.ErrorReply(core.FromFilter, 401, "who are you")
		r.Header.Add("WWW-Authenticate", "Bearer")
		return r, nil
	}
	a := s.recorded("a")
	a.response = func(x *core.Exchange) error {
		s.add(fmt.Sprintf("<a(%d %s)", x.Response.Status, x.Response.Source))
		x.Response.Header.Set("X-Cors", "1")
		return nil
	}
	h := open(t, route(url), through(a, b, s.recorded("c")))
	got := h.raw(getClose)
	for _, want := range []string{"HTTP/1.1 401 Unauthorized\r\n", "WWW-Authenticate: Bearer\r\n", "X-Cors: 1\r\n", `{"code":401,"message":"who are you","request_id":"`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q: %s", want, got)
		}
	}
	if got := s.String(); got != "a> b> <b <a(401 filter) a! b! c!" || len(heads) != 0 {
		t.Errorf("ran %s, the upstream got %d requests", got, len(heads))
	}
}

func TestAFilterThatBreaksFailsTheRequest(t *testing.T) {
	url, heads := recorder(t, ok)
	var s steps
	b := s.recorded("b")
	b.request = func(*core.Exchange) (*core.Reply, error) { return nil, errors.New("secret inner thing") }
	h := open(t, route(url), through(s.recorded("a"), b, s.recorded("c")))
	got := h.raw(getClose)
	if !strings.HasPrefix(got, "HTTP/1.1 500 ") || strings.Contains(got, "secret") || len(heads) != 0 {
		t.Errorf("got %s after %d requests to the upstream", got, len(heads))
	}
	if got := s.String(); got != "a> <b <a a! b! c!" {
		t.Errorf("ran %s", got)
	}
}

func TestAnErrorInAResponseFunctionIs500ForThoseAfterIt(t *testing.T) {
	url, _ := recorder(t, "HTTP/1.1 200 OK\r\nX-Inner: 1\r\nContent-Length: 2\r\n\r\nok")
	var s steps
	broken := s.recorded("b")
	broken.response = func(*core.Exchange) error { s.add("<b"); return errors.New("broken") }
	a := s.recorded("a")
	a.response = func(x *core.Exchange) error { s.add(fmt.Sprintf("<a(%d)", x.Response.Status)); return nil }
	h := open(t, route(url), through(a, broken, s.recorded("c")))
	for range 2 { // the second shows that the upstream's connection was left in order
		got := h.raw(getClose)
		if !strings.HasPrefix(got, "HTTP/1.1 500 ") || strings.Contains(got, "X-Inner") || !strings.HasSuffix(got, "\"}\n") {
			t.Errorf("got %s", got)
		}
	}
	if got := s.String(); got != strings.TrimSpace(strings.Repeat("a> b> c> <c <b <a(500) a! b! c! ", 2)) {
		t.Errorf("ran %s", got)
	}
}

// stubborn fails at every answer, however often it is asked.
type stubborn struct{ stage }

func (*stubborn) Response(*core.Exchange) error { return errors.New("broken") }

func TestAStageThatAlwaysFailsHoldsNobodyUp(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, route(url), func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) { return gateway.Built{Pipeline: pipeline{&stubborn{}}}, nil }
	})
	if got := h.raw(getClose); !strings.HasPrefix(got, "HTTP/1.1 500 ") {
		t.Errorf("got %q", got)
	}
}

func TestAReplyThatIsNoAnswerOpensNoDoor(t *testing.T) {
	for _, status := range []int{0, 101, 600, -1} {
		url, heads := recorder(t, ok)
		h := open(t, route(url), through(&stage{request: func(*core.Exchange) (*core.Reply, error) { return &core.Reply{Status: status}, nil }}))
		if got := h.raw(getClose); !strings.HasPrefix(got, "HTTP/1.1 500 ") || len(heads) != 0 {
			t.Errorf("a reply of status %d gave %q, the upstream got %d requests", status, got, len(heads))
		}
	}
}

func TestEveryRequestIsLoggedOnce(t *testing.T) {
	slow := scripted(t, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) })
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	gone := "http://" + dead.Addr().String()
	dead.Close()
	url, _ := recorder(t, ok)
	log, entries := watching()
	h := open(t, fmt.Sprintf(`
[http]
max_head = "2KiB"
max_url = "1KiB"
max_body = "1KiB"
head_timeout = "200ms"
body_idle = "200ms"
[[route]]
path = "/ok"
upstream = %q
[[route]]
path = "/slow"
upstream = %q
[route.timeouts]
first_byte = "100ms"
[[route]]
path = "/dead"
upstream = %q
`, url, slow, gone), through(log))
	for _, c := range []struct {
		name, request string
		status        int
		source        string
	}{
		{"answered", "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n", 200, "upstream"},
		{"no route", "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 404, "gateway"},
		{"no host", "GET /ok HTTP/1.1\r\nX: y\r\n\r\n", 400, "gateway"},
		{"dot segments", "GET /a/../ok HTTP/1.1\r\nHost: a\r\n\r\n", 400, "gateway"},
		{"no request at all", "\x16\x03\x01\x02\x00\r\n\r\n", 400, "gateway"},
		{"body too large", "POST /ok HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n", 413, "gateway"},
		{"body grows too large", "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n401\r\n" + strings.Repeat("x", 1025) + "\r\n0\r\n\r\n", 413, "gateway"},
		{"long target", "GET /" + strings.Repeat("a", 1100) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "gateway"},
		{"large head", "GET /ok HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 2100) + "\r\n\r\n", 431, "gateway"},
		{"version", "GET /ok HTTP/3.0\r\nHost: a\r\n\r\n", 505, "gateway"},
		{"refused", "GET /dead HTTP/1.1\r\nHost: a\r\n\r\n", 502, "gateway"},
		{"late", "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", 504, "gateway"},
		{"slow head", "GET /ok HTTP/1.1\r\nHost", 408, "gateway"},
		{"slow body", "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe", 408, "gateway"},
		{"bad chunk", "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "gateway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := h.raw(strings.Replace(c.request, "Host: a", "Host: a\r\nConnection: close", 1))
			if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", c.status)) {
				t.Errorf("the client got %q", got)
			}
			e := next(t, entries)
			if e.status != c.status || e.source != c.source {
				t.Errorf("the log has %+v", e)
			}
			if len(entries) != 0 {
				t.Errorf("and once more %+v", <-entries)
			}
		})
	}
}

func TestFieldsOfAnAnswerAreItsOwnUntilItIsLogged(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		_, _ = io.WriteString(w, "ok")
	})
	var wrong sync.Map
	second := &stage{log: func(x *core.Exchange) {
		for range 3 {
			if got := x.Response.Header.Get("X-Path"); !bytes.Equal(got, x.Request.RawPath) {
				wrong.Store(string(x.Request.RawPath), string(got))
			}
			time.Sleep(time.Millisecond) // others may take the connection now
		}
	}}
	h := open(t, route(url), through(second))
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			nc, r := h.dial()
			for i := range 40 {
				send(t, nc, fmt.Sprintf("GET /%d/%d HTTP/1.1\r\nHost: a\r\n\r\n", c, i))
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		})
	}
	clients.Wait()
	wrong.Range(func(path, saw any) bool {
		t.Errorf("the log function of %s saw the answer of %s", path, saw)
		return false
	})
}

func TestAFilterThatWantsTheBodyAsksForIt(t *testing.T) {
	heads := make(chan string, 1)
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		head, _ := readHead(r)
		heads <- head
		body := make([]byte, 5)
		_, _ = io.ReadFull(r, body)
		fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%s", body)
	})
	h := open(t, route(url), through(&stage{request: func(x *core.Exchange) (*core.Reply, error) {
		_, err := x.Request.Body.Buffer(100)
		return nil, err
	}}))
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	expect(t, r, "HTTP/1.1 100 Continue\r\n\r\n")
	send(t, nc, "hello")
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		t.Fatalf("%q %v", head, err)
	}
	expect(t, r, "hello")
	if head := <-heads; strings.Contains(head, "Expect") {
		t.Errorf("the upstream was asked too:\n%s", head)
	}
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") // the connection goes on
}

func TestARefusalSparesTheBodyThatWasHeldBack(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, route(url), through(&stage{request: func(*core.Exchange) (*core.Reply, error) {
		return core.ErrorReply(core.FromFilter, 403, "no"), nil
	}}))
	nc, r := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\nExpect: 100-continue\r\n\r\n")
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 403") || !strings.Contains(head, "Connection: close\r\n") {
		t.Fatalf("%q %v", head, err)
	}
	if rest, err := io.ReadAll(r); err != nil || !strings.HasSuffix(string(rest), "\"}\n") {
		t.Errorf("%q %v", rest, err)
	}
}

func TestBodiesThatFiltersSetAreSentWhole(t *testing.T) {
	echo := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %d", r.ContentLength, len(b))
	})
	deaf := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		_, _ = readHead(r)
		_, _ = io.WriteString(nc, ok)
		_, _ = io.Copy(io.Discard, r)
	})
	for _, size := range []int{0, 10, 32 << 10, 32<<10 + 1, 8 << 20} {
		set := &stage{request: func(x *core.Exchange) (*core.Reply, error) {
			x.Request.Body.Replace(bytes.Repeat([]byte("y"), size))
			return nil, nil
		}}
		for _, framing := range []string{"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"} {
			h := open(t, route(echo), through(set))
			got := h.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + framing)
			if want := fmt.Sprintf("\r\n\r\n%d %d", size, size); !strings.HasSuffix(got, want) {
				t.Errorf("size %d gave %q", size, got)
			}
			h = open(t, route(deaf), through(set))
			if got := h.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + framing); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
				t.Errorf("size %d to an upstream that answers first gave %q", size, got)
			}
		}
	}
}

func TestAnswersThatFiltersChangeStayTrue(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"} {
		url := scripted(t, func(nc net.Conn) {
			r := bufio.NewReader(nc)
			for {
				head, err := readHead(r)
				if err != nil {
					return
				}
				if strings.HasPrefix(head, "HEAD") {
					_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
				} else if _, _ = io.WriteString(nc, answer); strings.Contains(answer, "close") {
					return
				}
			}
		})
		h := open(t, route(url), through(&stage{response: func(x *core.Exchange) error {
			_, err := x.Response.Body.Buffer(100)
			x.Response.Body.Replace([]byte("changed"))
			return err
		}}))
		nc, r := h.dial()
		for _, method := range []string{"GET", "HEAD", "GET"} {
			send(t, nc, method+" / HTTP/1.1\r\nHost: a\r\n\r\n")
			head, err := readHead(r)
			if err != nil || strings.Count(head, "Content-Length: 7\r\n") != 1 || strings.Count(head, "Content-Length") != 1 || strings.Contains(head, "chunked") {
				t.Fatalf("%s of %.60q: %q %v", method, answer, head, err)
			}
			if method == "GET" {
				expect(t, r, "changed")
			}
		}
	}
}

func TestIdentityNeverComesInATrailer(t *testing.T) {
	got := make(chan http.Header, 1)
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer
	})
	h := open(t, "[http]\nidentity_headers = [\"X-User-Id\"]\n"+route(url))
	h.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-User-Id: root\r\nx_user_id: root\r\nX-Sum: 1\r\n\r\n")
	trailer := <-got
	if trailer.Get("X-User-Id") != "" || len(trailer["X_user_id"]) > 0 || trailer.Get("X-Sum") != "1" {
		t.Errorf("the upstream got %v", trailer)
	}
}

func TestWhatAFilterSetsIsNotTheClientsToTake(t *testing.T) {
	url, heads := recorder(t, ok)
	h := open(t, route(url), through(&stage{request: func(x *core.Exchange) (*core.Reply, error) {
		x.Request.Header.Set("X-Gw-User", "alice")
		return nil, nil
	}}))
	h.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Gw-User: mallory\r\nConnection: \r\nConnection: close, X-Gw-User, X-Forwarded-For\r\nKeep-Alive: 5\r\n\r\n")
	head := <-heads
	if strings.Count(head, "X-Gw-User: alice\r\n") != 1 || strings.Contains(head, "mallory") || !strings.Contains(head, "X-Forwarded-For: 127.0.0.1\r\n") ||
		strings.Contains(head, "Connection") || strings.Contains(head, "Keep-Alive") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestCookieLinesStayApartAndInOrder(t *testing.T) {
	const cookies = "Set-Cookie: a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT\r\nSet-Cookie: b=2\r\nSet-Cookie: a=3\r\n"
	url, heads := recorder(t, "HTTP/1.1 200 OK\r\n"+cookies+"Content-Length: 2\r\n\r\nok")
	h := open(t, route(url), through(&stage{response: func(x *core.Exchange) error {
		x.Response.Header.Add("Set-Cookie", "d=4")
		return nil
	}}))
	if got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-A: 1\r\nx-a: 2\r\n\r\n"); !strings.Contains(got, cookies) || !strings.Contains(got, "Set-Cookie: d=4\r\n") || strings.Count(got, "Set-Cookie") != 4 {
		t.Errorf("got %q", got)
	}
	if head := <-heads; !strings.Contains(head, "X-A: 1\r\nx-a: 2\r\n") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestEventsPassAFilterThatTouchesOnlyHeaders(t *testing.T) {
	goOn := make(chan struct{})
	url := scripted(t, func(nc net.Conn) {
		_, _ = readHead(bufio.NewReader(nc))
		_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n")
		<-goOn
		_, _ = io.WriteString(nc, "9\r\ndata: 1\n\n\r\n")
		<-goOn
		_, _ = io.WriteString(nc, "0\r\n\r\n")
	})
	h := open(t, route(url), through(&stage{response: func(x *core.Exchange) error {
		x.Response.Header.Set("X-Seen", "1")
		return nil
	}}))
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if head, err := readHead(r); err != nil || !strings.Contains(head, "X-Seen: 1\r\n") {
		t.Fatalf("the head waits for the first event: %q %v", head, err)
	}
	goOn <- struct{}{}
	expect(t, r, "9\r\ndata: 1\n\n\r\n")
	goOn <- struct{}{}
	expect(t, r, "0\r\n\r\n")
}
