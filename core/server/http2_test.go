package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/server"
	"github.com/moongate/moongate/core/server/h2test"
)

// echo answers with what the request was.
func echo(x *core.Exchange, c core.Client) {
	r := &x.Request
	body, err := io.ReadAll(&r.Body)
	if err != nil {
		fault, ok := errors.AsType[*core.Error](err)
		if !ok {
			fault = core.Fail(499, "gone", err)
		}
		handler(nil).Refuse(x, c, fault)
		return
	}
	var lines []string
	for _, f := range r.Header.Fields() {
		lines = append(lines, fmt.Sprintf("%s=%s", f.Name, f.Value))
	}
	slices.Sort(lines)
	for _, f := range r.Body.Trailer.Fields() {
		lines = append(lines, fmt.Sprintf("trailer %s=%s", f.Name, f.Value))
	}
	say(fmt.Sprintf("%s %s %s %s?%s %v none %v %q %s", r.Proto, r.Method, r.Host, r.RawPath, r.RawQuery, r.HasQuery, r.Body.None(), body, strings.Join(lines, " ")))(x, c)
}

func TestHTTP2ComesByItsPrefaceOnTheSamePort(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	for h2, proto := range map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"} {
		c := browser(t, s.addr, nil, h2)
		for range 3 {
			if _, body := get(t, c, "http://gw.test/a"); !strings.HasPrefix(body, proto+" GET gw.test /a") {
				t.Errorf("h2 %v: %s", h2, body)
			}
		}
	}
	if s.Connections() != 2 {
		t.Error(s.Connections(), "connections")
	}
}

func TestHTTP2RequestsArriveWhole(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	c := browser(t, s.addr, nil, true)
	body := struct{ io.Reader }{strings.NewReader("some text")} // of unknown length
	r, err := http.NewRequest("PATCH", "http://gw.test:81/a%2Fb/%41?x=%zz&;", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Many": {"1", "2"}, "Te": {"trailers"}, "User-Agent": nil, "Cookie": {"a=1; b=2"}}
	r.Trailer = http.Header{"X-Sum": {"9"}}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	want := `HTTP/2.0 PATCH gw.test:81 /a%2Fb/%41?x=%zz&; true none false "some text" Accept-Encoding=gzip Cookie=a=1; b=2 Te=trailers Trailer=X-Sum X-Many=1 X-Many=2 trailer X-Sum=9`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHTTP2AnswersArriveAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		fill   func(*core.Response)
		want   string
	}{
		"length kept": {"GET", func(w *core.Response) {
			w.Header.Add("content-length", "3")
			w.Body.Attach(strings.NewReader("abc"), 3)
		}, `200 3 "abc" map[Content-Length:[3]] map[]`},
		"no length invented, no type, no date": {"GET", func(w *core.Response) { w.Body.Attach(strings.NewReader("<html>"), -1) }, `200 -1 "<html>" map[] map[]`},
		"no body":                              {"GET", func(w *core.Response) { w.Body.Attach(nil, 0) }, `200 0 "" map[] map[]`},
		"empty with a length": {"GET", func(w *core.Response) {
			w.Header.Add("Content-Length", "0")
			w.Body.Attach(nil, 0)
		}, `200 0 "" map[Content-Length:[0]] map[]`},
		"HEAD keeps its length": {"HEAD", func(w *core.Response) {
			w.Header.Add("Content-Length", "77")
			w.Body.Attach(nil, 0)
		}, `200 77 "" map[Content-Length:[77]] map[]`},
		"304 keeps its tag": {"GET", func(w *core.Response) {
			w.Status = 304
			w.Header.Add("ETag", `"x"`)
			w.Body.Attach(nil, 0)
		}, `304 0 "" map[Etag:["x"]] map[]`},
		"204": {"GET", func(w *core.Response) {
			w.Status = 204
			w.Header.Add("Content-Length", "5")
			w.Body.Attach(nil, 0)
		}, `204 0 "" map[] map[]`},
		"lines of one name stay apart, hop-by-hop lines go": {"GET", func(w *core.Response) {
			for _, f := range [][2]string{{"Set-Cookie", "a=1"}, {"Connection", "x"}, {"Set-Cookie", "b=2"}, {"Keep-Alive", "1"}, {"Transfer-Encoding", "chunked"}, {"Upgrade", "h2c"}} {
				w.Header.Add(f[0], f[1])
			}
			w.Body.Attach(nil, 0)
		}, `200 0 "" map[Set-Cookie:[a=1 b=2]] map[]`},
		"trailers": {"GET", func(w *core.Response) {
			w.Body.Attach(strings.NewReader("abc"), -1)
			w.Body.Trailer.Add("X-Sum", "9")
			w.Body.Trailer.Add("Content-Length", "9")
		}, `200 -1 "abc" map[] map[X-Sum:[9]]`},
		"trailers alone": {"GET", func(w *core.Response) {
			w.Body.Attach(strings.NewReader(""), -1)
			w.Body.Trailer.Add("Grpc-Status", "0")
		}, `200 -1 "" map[] map[Grpc-Status:[0]]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, handler(func(x *core.Exchange, client core.Client) {
				x.Response.Status, x.Response.Source = 200, core.FromUpstream
				c.fill(&x.Response)
				if err := client.Respond(); err != nil {
					t.Error(err)
				}
			}), settings(), nil)
			r, _ := http.NewRequest(c.method, "http://gw.test/", nil)
			r.Header.Set("Accept-Encoding", "identity")
			resp, err := browser(t, s.addr, nil, true).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%d %d %q %v %v", resp.StatusCode, resp.ContentLength, body, resp.Header, resp.Trailer); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestHTTP2StreamsBothWaysAtOnce(t *testing.T) {
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		x.Response.Status, x.Response.Source = 200, core.FromUpstream
		x.Response.Body.Attach(&x.Request.Body, -1)
		if err := c.Respond(); err != nil {
			t.Error(err)
		}
	}), settings(), nil)
	r, w := io.Pipe()
	resp, err := browser(t, s.addr, nil, true).Post("http://gw.test/", "text/plain", r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := make([]byte, 5)
	for i := range 20 {
		text := fmt.Sprintf("%05d", i)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, in); err != nil || string(in) != text {
			t.Fatalf("%q %v", in, err)
		}
	}
	w.Close()
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

func TestHTTP2InterimAnswersGoOutAtOnce(t *testing.T) {
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		var h core.Header
		h.Add("Link", "</a>")
		h.Add("Connection", "x")
		_ = c.Inform(103, &h)
		say("ok")(x, c)
	}), settings(), nil)
	r, _ := http.NewRequest("GET", "http://gw.test/", nil)
	var seen []string
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		seen = append(seen, fmt.Sprint(code, h))
		return nil
	}}))
	resp, err := browser(t, s.addr, nil, true).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(seen) != 1 || seen[0] != "103 map[Link:[</a>]]" || resp.Header.Get("Link") != "" {
		t.Errorf("%v, then %v", seen, resp.Header)
	}
}

func TestHTTP2CutAnswersNeverEndCleanly(t *testing.T) {
	for _, length := range []int64{-1, 10} {
		s := open(t, handler(func(x *core.Exchange, c core.Client) {
			x.Response.Status, x.Response.Source = 200, core.FromUpstream
			x.Response.Body.Attach(io.MultiReader(strings.NewReader("half"), broken{}), length)
			if err := c.Respond(); err == nil {
				t.Error("no error came back")
			}
		}), settings(), nil)
		resp, err := browser(t, s.addr, nil, true).Get("http://gw.test/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil || string(body) != "half" {
			t.Errorf("length %d: %q, %v", length, body, err)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("cut") }

func TestHTTP2ClientsThatLeaveAreNoticed(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan bool, 1)
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		cut := make(chan struct{})
		x.Lifeline.Hold(cutter(func() { close(cut) }))
		close(arrived)
		select {
		case <-cut:
			gone <- true
		case <-time.After(patience):
			gone <- false
		}
		x.Lifeline.Release()
	}), settings(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-arrived
		cancel()
	}()
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://gw.test/", nil)
	if resp, err := browser(t, s.addr, nil, true).Do(r); err == nil {
		resp.Body.Close()
	}
	if !<-gone {
		t.Error("nobody noticed")
	}
}

// counting counts the connections whose memory has been given back.
type counting struct {
	net.Listener
	freed atomic.Int32
}

func (l *counting) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if tcp, ok := nc.(*net.TCPConn); ok {
		runtime.AddCleanup(tcp, func(l *counting) { l.freed.Add(1) }, l)
	}
	return nc, err
}

// TestHTTP2ClientsThatLeaveLeaveNoMemoryBehind: what a request and its connection held goes with the client, not when the request's time is over.
func TestHTTP2ClientsThatLeaveLeaveNoMemoryBehind(t *testing.T) {
	l, err := server.Listen("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	counts := &counting{Listener: l.Listener}
	l.Listener = counts
	l.Configure(server.Listening{Name: "here"}, nil)
	set := settings()
	set.BodyIdle = time.Hour
	read, ended := make(chan struct{}), make(chan struct{})
	i := openOn(t, l, handler(func(x *core.Exchange, _ core.Client) {
		_, _ = io.ReadFull(&x.Request.Body, make([]byte, 5))
		close(read)
		_, _ = io.Copy(io.Discard, &x.Request.Body)
		close(ended)
	}), set)
	c := browser(t, i.addr, nil, true)
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, "POST", "http://a/", in)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := c.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	_, _ = io.WriteString(out, "hello")
	<-read
	cancel()
	<-left
	<-ended
	for end := time.Now().Add(patience); counts.freed.Load() == 0; <-time.After(10 * time.Millisecond) {
		c.CloseIdleConnections() // the client takes a moment to see that nothing goes over it any more
		if runtime.GC(); time.Now().After(end) {
			t.Fatal("the connection is still held")
		}
	}
}

func TestHTTP2BodiesThatStandStillEnd(t *testing.T) {
	set := settings()
	set.BodyIdle = 100 * time.Millisecond
	read := make(chan error, 1)
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		_, err := io.ReadAll(&x.Request.Body)
		read <- err
		say("late")(x, c)
	}), set, nil)
	r, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = io.WriteString(w, "x") }()
	resp, err := browser(t, s.addr, nil, true).Post("http://gw.test/", "text/plain", r)
	if err == nil {
		resp.Body.Close()
	}
	if err := <-read; !errors.Is(err, http1.ErrTimeout) {
		t.Errorf("reading ended with %v", err)
	}
}

func TestHTTP2ALiveStreamMayBeQuiet(t *testing.T) {
	set := settings()
	set.BodyIdle = 50 * time.Millisecond
	r, w := io.Pipe()
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		x.Response.Status, x.Response.Source = 200, core.FromUpstream
		x.Response.Body.Attach(r, -1)
		if err := c.Respond(); err != nil {
			t.Error(err)
		}
	}), set, nil)
	resp, err := browser(t, s.addr, nil, true).Get("http://gw.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	timer := time.NewTimer(4 * set.BodyIdle)
	<-timer.C
	_, _ = io.WriteString(w, "event")
	w.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "event" || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

func TestHTTP2AReaderThatStandsStillIsLetGo(t *testing.T) {
	set := settings()
	set.BodyIdle = 100 * time.Millisecond
	ended := make(chan error, 1)
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		x.Response.Status, x.Response.Source = 200, core.FromUpstream
		x.Response.Body.Attach(io.LimitReader(zeros{}, 64<<20), 64<<20)
		ended <- c.Respond()
	}), set, nil)
	resp, err := browser(t, s.addr, nil, true).Get("http://gw.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("all of it was written to nobody")
		}
	case <-time.After(patience):
		t.Error("still writing")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// raw is a client that writes frames by hand.
type raw struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial2(t *testing.T, addr string) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	c := &raw{t, nc, bufio.NewReader(nc)}
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.frame(4, 0, 0, nil)
	return c
}

func (c *raw) frame(kind, flags byte, id uint32, payload []byte) error {
	head := make([]byte, 9, 9+len(payload))
	binary.BigEndian.PutUint32(head, uint32(len(payload))<<8|uint32(kind))
	head[4] = flags
	binary.BigEndian.PutUint32(head[5:], id)
	_, err := c.Write(append(head, payload...))
	return err
}

// block is a header block of literal fields without indexing (RFC 7541 section 6.2.2).
func block(pairs ...string) []byte {
	var b bytes.Buffer
	for i := 0; i < len(pairs); i += 2 {
		b.WriteByte(0)
		for _, s := range pairs[i : i+2] {
			if n := len(s); n < 127 {
				b.WriteByte(byte(n))
			} else {
				b.WriteByte(127)
				for n -= 127; n >= 128; n >>= 7 {
					b.WriteByte(byte(n) | 128)
				}
				b.WriteByte(byte(n))
			}
			b.WriteString(s)
		}
	}
	return b.Bytes()
}

// outcome reads until something is said about a stream: "status N", "reset N", "goaway N" or "closed".
func (c *raw) outcome(id uint32) string {
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c.r, head); err != nil {
			return "closed"
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.r, payload); err != nil {
			return "closed"
		}
		switch kind := head[3]; {
		case kind == 7:
			return fmt.Sprint("goaway ", binary.BigEndian.Uint32(payload[4:]))
		case binary.BigEndian.Uint32(head[5:]) != id:
		case kind == 1:
			return "status " + status(payload)
		case kind == 3:
			return fmt.Sprint("reset ", binary.BigEndian.Uint32(payload))
		}
	}
}

// status decodes :status, which comes first: indexed, or literal with an indexed name.
func status(b []byte) string {
	if known := map[byte]string{0x88: "200", 0x89: "204", 0x8c: "400", 0x8d: "404", 0x8e: "500"}[b[0]]; known != "" {
		return known
	}
	if len(b) > 4 && b[0]&0xc0 == 0x40 && b[1] == 3 {
		return string(b[2:5])
	}
	return fmt.Sprintf("%x", b)
}

func TestHTTP2HeadsThatCannotBeMeantAreRefused(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	base := []string{":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"}
	with := func(more ...string) []string { return append(slices.Clone(base), more...) }
	without := func(name string, more ...string) []string {
		i := slices.Index(base, name)
		return append(slices.Delete(slices.Clone(base), i, i+2), more...)
	}
	for name, c := range map[string]struct {
		head []string
		want string
	}{
		"plain":                     {base, "status 200"},
		"a request line as method":  {without(":method", ":method", "GET /secret HTTP/1.1"), "status 400"},
		"a method with a tab":       {without(":method", ":method", "GET\t/x"), "status 400"},
		"a method that is no token": {without(":method", ":method", "G(T"), "status 400"},
		"host instead of authority": {without(":authority", "host", "gw.test"), "status 200"},
		"host beside authority":     {with("host", "gw.test"), "status 200"},
		"another host":              {with("host", "other.test"), "status 400"},
		"two hosts":                 {without(":authority", "host", "gw.test", "host", "gw.test"), "status 400"},
		"no authority":              {without(":authority"), "status 400"},
		"authority with a space":    {without(":authority", ":authority", "a b"), "status 400"},
		"authority with a port":     {without(":authority", ":authority", "gw.test:8080"), "status 200"},
		"a port that is none":       {without(":authority", ":authority", "gw.test:x"), "status 400"},
		"user in the authority":     {without(":authority", ":authority", "u@gw.test"), "reset 1"},
		"connection":                {with("connection", "close"), "status 400"},
		"keep-alive":                {with("keep-alive", "1"), "status 400"},
		"transfer-encoding":         {with("transfer-encoding", "chunked"), "status 400"},
		"upgrade":                   {with("upgrade", "h2c"), "status 400"},
		"te gzip":                   {with("te", "gzip"), "status 400"},
		"te trailers":               {with("te", "trailers"), "status 200"},
		"no path":                   {without(":path"), "reset 1"},
		"a path without a slash":    {without(":path", ":path", "http://gw.test/"), "status 400"},
		"a fragment":                {without(":path", ":path", "/a#b"), "status 400"},
		"asterisk":                  {without(":path", ":path", "*"), "status 400"},
		"a long path":               {without(":path", ":path", "/"+strings.Repeat("a", 17<<10)), "status 414"},
		"large headers":             {with("x-a", strings.Repeat("a", 40<<10), "x-b", strings.Repeat("b", 30<<10)), "status 431"},
		"too many headers":          {with(slices.Repeat([]string{"x", "y"}, 501)...), "status 431"},
		"two types":                 {with("content-type", "a/b", "content-type", "c/d"), "status 400"},
		"unknown expectation":       {with("expect", "magic"), "status 417"},
		"length without a body":     {with("content-length", "5"), "status 400"},
		"two lengths":               {with("content-length", "0", "content-length", "0"), "status 400"},
		"a length that is none":     {with("content-length", "+0"), "status 400"},
		"upper-case name":           {with("X-Up", "1"), "reset 1"},
		"unknown pseudo":            {with(":x", "1"), "reset 1"},
		"line break in a value":     {with("x", "a\r\nb"), "reset 1"},
		"a value behind a space":    {with("x", " a"), "status 400"},
		"a value before a tab":      {with("x", "a\t"), "status 400"},
		"a value that is a space":   {with("x", " "), "status 400"},
		"an empty value":            {with("x", ""), "status 200"},
		"a space inside of a value": {with("x", "a b"), "status 200"},
	} {
		r := dial2(t, s.addr)
		flags, first := byte(5), block(c.head...)
		var rest []byte
		if len(first) > 16<<10 {
			flags, first, rest = 1, first[:16<<10], first[16<<10:]
		}
		r.frame(1, flags, 1, first)
		for len(rest) > 0 {
			n := min(len(rest), 16<<10)
			var end byte
			if n == len(rest) {
				end = 4
			}
			r.frame(9, end, 1, rest[:n])
			rest = rest[n:]
		}
		if got := r.outcome(1); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestHTTP2BodiesHoldToTheirLength(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	for name, c := range map[string]struct {
		length, data string
		want         []string
	}{
		"right":     {"5", "12345", []string{"status 200"}},
		"too short": {"6", "12345", []string{"status 400", "reset 1"}},
		"too long":  {"4", "12345", []string{"status 400", "reset 1"}},
		"zero":      {"0", "", []string{"status 200"}},
		"not zero":  {"0", "1", []string{"status 400", "reset 1", "status 200"}}, // nobody asks for a body of no bytes
	} {
		r := dial2(t, s.addr)
		r.frame(1, 4, 1, block(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "gw.test", "content-length", c.length))
		r.frame(0, 1, 1, []byte(c.data))
		if got := r.outcome(1); !slices.Contains(c.want, got) {
			t.Errorf("%s: %s, want one of %q", name, got, c.want)
		}
	}
}

func TestHTTP2FloodsEndTheConnection(t *testing.T) {
	head := block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test")
	wait := block(":method", "POST", ":scheme", "http", ":path", "/wait", ":authority", "gw.test")
	release := make(chan struct{})
	defer close(release)
	for name, flood := range map[string]func(*raw){
		"pings": func(r *raw) {
			for range 5000 {
				r.frame(6, 0, 0, make([]byte, 8))
			}
		},
		"settings": func(r *raw) {
			for range 500 {
				r.frame(4, 0, 0, nil)
			}
		},
		"resets": func(r *raw) {
			for i := range uint32(400) {
				r.frame(1, 5, 2*i+1, head)
				r.frame(3, 0, 2*i+1, make([]byte, 4))
			}
		},
		"continuations": func(r *raw) {
			r.frame(1, 0, 1, head)
			for range 5000 {
				r.frame(9, 0, 1, nil)
			}
		},
		"empty data": func(r *raw) {
			r.frame(1, 4, 1, block(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
			for range 5000 {
				r.frame(0, 0, 1, nil)
			}
		},
		"priorities": func(r *raw) {
			for range 5000 {
				r.frame(2, 0, 1, make([]byte, 5))
			}
		},
		"padded data without content": func(r *raw) {
			r.frame(1, 4, 1, wait)
			for range 5000 {
				r.frame(0, 8, 1, append([]byte{9}, make([]byte, 9)...))
			}
		},
		"windows of the connection": func(r *raw) {
			r.frame(1, 4, 1, wait)
			for range 5000 {
				r.frame(8, 0, 0, []byte{0, 0, 0, 1})
			}
		},
		"windows of a stream": func(r *raw) {
			r.frame(1, 4, 1, wait)
			for range 5000 {
				r.frame(8, 0, 1, []byte{0, 0, 0, 1})
			}
		},
		"windows of nothing": func(r *raw) {
			for i := range uint32(4000) {
				r.frame(1, 4, 2*i+1, head)
				r.frame(8, 0, 2*i+1, make([]byte, 4))
			}
		},
		"windows too wide": func(r *raw) {
			for i := range uint32(4000) {
				r.frame(1, 4, 2*i+1, wait)
				r.frame(8, 0, 2*i+1, []byte{127, 255, 255, 255})
			}
		},
		"data behind the end": func(r *raw) {
			for i := range uint32(4000) {
				r.frame(1, 5, 2*i+1, wait)
				r.frame(0, 1, 2*i+1, []byte("x"))
			}
		},
		"streams that depend on themselves": func(r *raw) {
			for i := range uint32(4000) {
				r.frame(1, 4, 2*i+1, head)
				r.frame(2, 0, 2*i+1, append(binary.BigEndian.AppendUint32(nil, 2*i+1), 0))
			}
		},
		"trailers with pseudo-headers": func(r *raw) {
			for i := range uint32(4000) {
				r.frame(1, 4, 2*i+1, wait)
				r.frame(1, 5, 2*i+1, block(":path", "/"))
			}
		},
		"malformed heads": func(r *raw) {
			for i := range uint32(4000) {
				r.frame(1, 5, 2*i+1, block(":method", "GET", "X-A", "1"))
			}
		},
		"streams beyond the limit": func(r *raw) {
			for i := range uint32(10000) {
				r.frame(1, 4, 2*i+1, wait)
			}
		},
		"a head that never ends": func(r *raw) {
			r.frame(1, 0, 1, head[:5])
		},
	} {
		set := settings()
		if strings.HasPrefix(name, "a head") {
			set.HeadTimeout = 100 * time.Millisecond
		}
		s := open(t, handler(func(x *core.Exchange, c core.Client) {
			if string(x.Request.RawPath) == "/wait" {
				<-release
			}
			say("ok")(x, c)
		}), set, nil)
		r := dial2(t, s.addr)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, r.r)
		}()
		flood(r)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("%s: the connection lives", name)
		}
		r.Close()
		<-ended
	}
}

func TestHTTP2OrdinaryClientsAreNoFlood(t *testing.T) {
	s := open(t, say("ok"), settings(), nil)
	c := browser(t, s.addr, nil, true)
	for range 3000 {
		if _, body := get(t, c, "http://gw.test/"); body != "ok" {
			t.Fatal(body)
		}
	}
	if s.Connections() != 1 {
		t.Error(s.Connections(), "connections")
	}
}

// TestHTTP2ClientsThatSayMoreThanTheyNeedAreNoFlood: some open their windows for each byte, some begin before they have heard how many streams there may be.
func TestHTTP2ClientsThatSayMoreThanTheyNeedAreNoFlood(t *testing.T) {
	release := make(chan struct{})
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		if string(x.Request.RawPath) == "/wait" {
			<-release
		}
		say(strings.Repeat("x", 10000))(x, c)
	}), settings(), nil)
	head := func(path string) []byte {
		return block(":method", "GET", ":scheme", "http", ":path", path, ":authority", "gw.test")
	}
	bytewise := dial2(t, s.addr)
	for id := uint32(1); id < 7; id += 2 {
		bytewise.frame(1, 5, id, head("/"))
		if got := bytewise.outcome(id); got != "status 200" {
			t.Fatalf("stream %d of a client that opens its windows bytewise: %s", id, got)
		}
		for range 9000 {
			bytewise.update(0, 1)
			bytewise.update(id, 1)
		}
	}
	eager := dial2(t, s.addr)
	for i := range uint32(400) {
		eager.frame(1, 5, 2*i+1, head("/wait"))
	}
	if got := eager.outcome(2*399 + 1); got != "reset 7" {
		t.Errorf("the 400th stream at once: %s", got)
	}
	close(release)
	for id := uint32(1001); ; id += 2 { // those before it come to their end
		eager.frame(1, 5, id, head("/"))
		got := eager.outcome(id)
		if got == "status 200" {
			break
		}
		if got != "reset 7" {
			t.Fatalf("later: %s", got)
		}
	}
}

// TestHTTP2ValuesGoOutWithoutWhiteSpaceAround: filters may set what they like, and clients take it for malformed (RFC 9113 section 8.2.1).
func TestHTTP2ValuesGoOutWithoutWhiteSpaceAround(t *testing.T) {
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		answer(x, 200, "ok")
		x.Response.Header.Add("X-A", " \ta b ")
		x.Response.Header.Add("X-B", " ")
		_ = c.Respond()
	}), settings(), nil)
	resp, _ := get(t, browser(t, s.addr, nil, true), "http://gw.test/")
	if a, b := resp.Header.Get("X-A"), resp.Header.Get("X-B"); a != "a b" || b != "" {
		t.Errorf("got %q and %q", a, b)
	}
}

// messages is a body that comes piece by piece, until the channel is closed.
type messages chan struct{}

func (m messages) Read(b []byte) (int, error) {
	if _, more := <-m; !more {
		return 0, io.EOF
	}
	return copy(b, "a message"), nil
}

// TestHTTP2ClientsThatMeasureTheirConnectionAreNoFlood: those of gRPC open their window and send a ping whenever something has come, as long as the last is
// answered.
func TestHTTP2ClientsThatMeasureTheirConnectionAreNoFlood(t *testing.T) {
	next := make(messages, 1)
	end := sync.OnceFunc(func() { close(next) })
	defer end()
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		answer(x, 200, "")
		x.Response.Body.Attach(next, -1)
		_ = c.Respond()
	}), settings(), nil)
	r := dial2(t, s.addr)
	_ = r.SetDeadline(time.Now().Add(time.Minute))
	r.frame(1, 5, 1, block(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
	next <- struct{}{}
	for pings := 0; ; {
		head := make([]byte, 9)
		if _, err := io.ReadFull(r.r, head); err != nil {
			t.Fatalf("%v behind %d messages", err, pings)
		}
		n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if _, err := r.r.Discard(n); err != nil {
			t.Fatal(err)
		}
		switch head[3] {
		case 0:
			if head[4]&1 != 0 {
				return
			}
			r.update(0, uint32(n))
			r.update(1, uint32(n))
			r.frame(6, 0, 0, make([]byte, 8))
		case 6:
			if pings++; pings == 5000 {
				end()
			} else {
				next <- struct{}{}
			}
		case 3, 7:
			t.Fatalf("frame %d behind %d messages", head[3], pings)
		}
	}
}

func TestHTTP2LimitsItsStreams(t *testing.T) {
	release := make(chan struct{})
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		<-release
		say("ok")(x, c)
	}), settings(), nil)
	r := dial2(t, s.addr)
	r.frame(4, 1, 0, nil)
	head := block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test")
	for i := range uint32(129) {
		r.frame(1, 5, 2*i+1, head)
	}
	if got := r.outcome(2*128 + 1); !strings.HasPrefix(got, "reset") {
		t.Error("the stream beyond the limit:", got)
	}
	close(release)
	if got := r.outcome(1); got != "status 200" {
		t.Error("the first stream:", got)
	}
}

// TestHTTP2BodiesThatNobodyReadsDoNotStopOthers fills the windows of all streams but one, as WebSockets do whose upstream takes nothing.
func TestHTTP2BodiesThatNobodyReadsDoNotStopOthers(t *testing.T) {
	release := make(chan struct{})
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		if string(x.Request.RawPath) == "/held" {
			<-release
			say("held")(x, c)
			return
		}
		echo(x, c)
	}), settings(), nil)
	defer close(release)
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := h2test.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	post := func(path string, body []byte) *h2test.Stream {
		stream, err := c.Open(false, ":method", "POST", ":scheme", "http", ":path", path, ":authority", "gw.test")
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() {
			_, err := stream.Write(body)
			sent <- err
		}()
		select {
		case err = <-sent:
		case <-time.After(patience):
			err = errors.New("the connection's window does not open")
		}
		if err != nil {
			t.Fatal(path, err)
		}
		return stream
	}
	window := make([]byte, c.Setting(http2.SettingInitialWindowSize))
	for range c.Setting(http2.SettingMaxConcurrentStreams) - 1 {
		post("/held", window)
	}
	last := post("/read", []byte("hello"))
	if err := last.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := last.Wait(); err != nil || last.Status() != 200 {
		t.Error(last.Status(), err)
	}
}

func TestHTTP2DrainsOnShutdown(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		close(arrived)
		<-release
		say("ok")(x, c)
	}), settings(), nil)
	r := dial2(t, s.addr)
	r.frame(1, 5, 1, block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
	<-arrived
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if got := r.outcome(1); got != "goaway 0" {
		t.Error("at first:", got)
	}
	close(release)
	if got := r.outcome(1); got != "status 200" {
		t.Error("the request in flight:", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHTTP2IdleConnectionsSeeTheEndBehindGoAway has a client that has something to say only once it has seen the end of the connection.
func TestHTTP2IdleConnectionsSeeTheEndBehindGoAway(t *testing.T) {
	ca := newAuthority(t)
	for name, t0 := range map[string]*server.TLS{"h2c": nil, "h2": server.NewTLS(server.TLSOptions{Certificates: []*server.Certificate{ca.certificate(t, "a.test")}})} {
		s := open(t, say("ok"), settings(), t0)
		var c *tls.Config
		if t0 != nil {
			c = &tls.Config{ServerName: "a.test", RootCAs: ca.pool()}
		}
		b := browser(t, s.addr, c, true)
		scheme := map[bool]string{true: "https", false: "http"}[t0 != nil]
		if _, body := get(t, b, scheme+"://a.test/"); body != "ok" {
			t.Fatal(name, body)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(name, err)
		}
		if s.Connections() != 0 {
			t.Error(name, s.Connections(), "connections")
		}
	}
	s := open(t, say("ok"), settings(), nil)
	r := dial2(t, s.addr)
	r.frame(1, 5, 1, block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
	if got := r.outcome(1); got != "status 200" {
		t.Fatal(got)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if got := r.outcome(0); got != "goaway 0" {
		t.Error(got)
	}
	if got := r.outcome(0); got != "closed" {
		t.Error("behind it:", got)
	}
	r.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHTTP2AClientThatSendsOnLearnsThatItsConnectionEnds has one that is late to read the GOAWAY frame and goes on with a body that nobody has seen.
func TestHTTP2AClientThatSendsOnLearnsThatItsConnectionEnds(t *testing.T) {
	for _, reason := range []string{"other settings", "idle for too long"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			set, wait := settings(), 100*time.Millisecond
			if reason == "idle for too long" {
				set.IdleTimeout = time.Second
				wait += set.IdleTimeout
			}
			s := open(t, say("ok"), set, nil)
			r := dial2(t, s.addr)
			r.frame(1, 5, 1, block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
			if got := r.outcome(1); got != "status 200" {
				t.Fatal(got)
			}
			if reason == "other settings" {
				set.Head.Line = 200
				s.Apply(set)
			}
			since := time.Now().Add(wait - 100*time.Millisecond) // the end
			<-time.After(wait)
			r.frame(1, 4, 3, block(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
			for began := time.Now(); time.Since(began) < 1800*time.Millisecond; <-time.After(20 * time.Millisecond) { // the standard library closes after one second
				if err := r.frame(0, 0, 3, make([]byte, 100)); err != nil {
					if time.Since(since) > 2*time.Second { // the machine stood still, and the connection was not waited for
						return
					}
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
			}
			if got := r.outcome(0); got != "goaway 0" {
				t.Error("the end of the connection came as", got)
			}
		})
	}
}

func TestHTTP2NewSettingsHoldForNewConnections(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	c := browser(t, s.addr, nil, true)
	if _, body := get(t, c, "http://gw.test/"); !strings.HasPrefix(body, "HTTP/2.0") {
		t.Fatal(body)
	}
	set := settings()
	set.Head.Line = 20
	s.Apply(set)
	for range 3 {
		resp, _ := get(t, c, "http://gw.test/longer-than-twenty-bytes")
		if resp.StatusCode != 414 {
			t.Error(resp.Status)
		}
	}
}

func TestHTTP2SettingsHoldInTheirOrder(t *testing.T) {
	s := open(t, say("0123456789"), settings(), nil)
	for name, c := range map[string]struct {
		values []uint32
		want   int // bytes of the first piece; 0: the connection ends
	}{"one": {[]uint32{3}, 3}, "two": {[]uint32{100, 1}, 1}, "three": {[]uint32{0, 7, 5}, 5}, "a bad one first": {[]uint32{1 << 31, 1}, 0}} {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.SetDeadline(time.Now().Add(patience))
		r := &raw{t, nc, bufio.NewReader(nc)}
		_, _ = io.WriteString(r, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		var payload []byte
		for _, v := range c.values {
			payload = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(payload, 4), v)
		}
		r.frame(4, 0, 0, payload)
		r.frame(1, 5, 1, block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
		got := 0
		for got == 0 {
			head := make([]byte, 9)
			if _, err := io.ReadFull(r.r, head); err != nil || head[3] == 7 {
				break
			}
			size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
			if _, err := r.r.Discard(size); err != nil {
				break
			}
			if head[3] == 0 {
				got = size
			}
		}
		nc.Close()
		if got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

func TestListenersSpeakWhatTheyAreTold(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	s.Configure(server.Listening{Protocol: server.HTTP2}, nil)
	if _, body := get(t, browser(t, s.addr, nil, true), "http://gw.test/"); !strings.HasPrefix(body, "HTTP/2.0") {
		t.Error(body)
	}
	if resp, err := browser(t, s.addr, nil, false).Get("http://gw.test/"); err == nil {
		resp.Body.Close()
		t.Error("HTTP/1.1 is answered where HTTP/2 alone is spoken")
	}
	s.Configure(server.Listening{Protocol: server.HTTP1}, nil)
	if _, body := get(t, browser(t, s.addr, nil, false), "http://gw.test/"); !strings.HasPrefix(body, "HTTP/1.1") {
		t.Error(body)
	}
	if resp, err := browser(t, s.addr, nil, true).Get("http://gw.test/"); err == nil {
		resp.Body.Close()
		t.Error("HTTP/2 is answered where HTTP/1.1 alone is spoken")
	}
}

func TestHTTP2MalformedRequestsAreAnsweredAndReset(t *testing.T) {
	s := open(t, handler(echo), settings(), nil)
	for _, line := range [][]string{{"connection", "x"}, {"upgrade", "h2c"}, {"te", "gzip"}, {"transfer-encoding", "chunked"}} {
		r := dial2(t, s.addr)
		r.frame(1, 5, 1, block(append([]string{":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"}, line...)...))
		r.frame(1, 5, 3, block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
		if got := r.outcome(1); got != "status 400" {
			t.Errorf("%s: %s", line, got)
		}
		if got := r.outcome(1); got != "reset 1" {
			t.Errorf("%s: then %s", line, got)
		}
	}
	r := dial2(t, s.addr) // the same words from elsewhere are a body like any other
	r.frame(1, 4, 1, block(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
	r.frame(0, 1, 1, []byte("request header \"Connection\" is not valid in HTTP/2\n"))
	if got := r.outcome(1); got != "status 200" {
		t.Error(got)
	}
}

// open2 asks for the answer on stream 1 of a client whose streams begin with a window of 0.
func (c *raw) open2() {
	c.frame(4, 0, 0, []byte{0, 4, 0, 0, 0, 0})
	c.frame(1, 5, 1, block(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "gw.test"))
}

// update opens a window by n bytes.
func (c *raw) update(id, n uint32) { c.frame(8, 0, id, binary.BigEndian.AppendUint32(nil, n)) }

// received reads until stream 1 ends and counts the bytes of its body.
func (c *raw) received() (n int, reset bool) {
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c.r, head); err != nil {
			return n, true
		}
		size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if _, err := c.r.Discard(size); err != nil {
			return n, true
		}
		switch {
		case binary.BigEndian.Uint32(head[5:]) != 1:
		case head[3] == 3:
			return n, true
		case head[3] == 0:
			if n += size; head[4]&1 != 0 {
				return n, false
			}
		}
	}
}

func TestHTTP2AWindowThatIsOpenedInTimeIsNotSlow(t *testing.T) {
	set := settings()
	set.BodyIdle, set.MinRate, set.RateGrace = 30*time.Second, 500, 2*time.Second
	const size = 35_000
	for name, body := range map[string]func(*core.Exchange){
		"streamed": func(x *core.Exchange) { x.Response.Body.Attach(io.LimitReader(zeros{}, size), size) },
		"whole":    func(x *core.Exchange) { x.Response.Body.Replace(make([]byte, size)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, handler(func(x *core.Exchange, c core.Client) {
				x.Response.Status, x.Response.Source = 200, core.FromUpstream
				body(x)
				if err := c.Respond(); err != nil {
					t.Error(err)
				}
			}), set, nil)
			c := dial2(t, s.addr)
			c.open2()
			go func() { // ten times as fast as is asked, and longer than anybody may stand still
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for range size / 100 {
					<-tick.C
					c.update(1, 100)
				}
			}()
			if n, reset := c.received(); n != size || reset {
				t.Errorf("%d bytes, reset %v", n, reset)
			}
		})
	}
}

func TestHTTP2AWindowThatIsHardlyOpenedIsSlow(t *testing.T) {
	set := settings()
	set.BodyIdle, set.MinRate, set.RateGrace = 30*time.Second, 1<<20, 100*time.Millisecond
	ended := make(chan error, 1)
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		x.Response.Status, x.Response.Source = 200, core.FromUpstream
		x.Response.Body.Attach(io.LimitReader(zeros{}, 1<<20), 1<<20)
		ended <- c.Respond()
	}), set, nil)
	c := dial2(t, s.addr)
	c.open2()
	over := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				c.update(1, 1)
			}
		}
	})
	if n, reset := c.received(); !reset {
		t.Errorf("%d bytes, not reset", n)
	}
	if err := <-ended; !errors.As(err, new(*http1.SlowError)) {
		t.Errorf("the handler got %v", err)
	}
	close(over)
	writer.Wait()
}
