package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/proxy"
	"github.com/moongate/moongate/core/upstream"
)

// saying is an endpoint that reads a head, says something and closes the connection.
func saying(t *testing.T, text string) string {
	return scripted(t, func(nc net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(nc)); err == nil {
			_, _ = io.WriteString(nc, text)
		}
	})
}

// silent is an endpoint that takes all and says nothing.
func silent(t *testing.T) string {
	return scripted(t, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) })
}

func TestEachFaultHasItsStatus(t *testing.T) {
	brief := func(o *upstream.Options) { o.Limits.FirstByte = 50 * time.Millisecond }
	for _, c := range []struct {
		name   string
		url    func(t *testing.T) string
		change func(o *upstream.Options)
		want   answered
		speaks bool // against the endpoint
	}{
		{"refused", refused, nil, answered{502, "upstream cannot be reached"}, true},
		{"no TLS", func(t *testing.T) string {
			return "https://" + strings.TrimPrefix(saying(t, "HTTP/1.1 200 OK\r\n\r\n"), "http://")
		}, nil, answered{502, "upstream cannot be reached"}, true},
		{"no HTTP/2", silent, func(o *upstream.Options) {
			o.Protocol, o.Limits.Connect = upstream.H2C, 50*time.Millisecond
		}, answered{502, "upstream cannot be reached"}, true},
		{"closed at once", func(t *testing.T) string { return saying(t, "") }, nil, answered{502, "upstream closed the connection"}, true},
		{"closed in the head", func(t *testing.T) string { return saying(t, "HTTP/1.1 200 OK\r\nX:") }, nil, answered{502, "upstream closed the connection"}, true},
		{"no HTTP", func(t *testing.T) string { return saying(t, "rubbish\r\n\r\n") }, nil, answered{502, "upstream sent a malformed answer"}, true},
		{"a head too large", func(t *testing.T) string {
			return saying(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", upstream.AnswerHead)+"\r\n\r\n")
		}, nil, answered{502, "upstream sent a malformed answer"}, true},
		{"switched unasked", func(t *testing.T) string {
			return saying(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
		}, nil, answered{502, "upstream sent a malformed answer"}, true},
		{"silent", silent, brief, answered{504, "upstream did not answer in time"}, true},
		{"silent within the total", silent, func(o *upstream.Options) {
			o.Limits.Total = 50 * time.Millisecond
		}, answered{504, "upstream did not answer in time"}, true},
		{"status 500", func(t *testing.T) string {
			return saying(t, "HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\noh")
		}, nil, answered{500, "oh"}, true},
		{"status 404", func(t *testing.T) string {
			return saying(t, "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno")
		}, nil, answered{404, "no"}, false},
		{"a body cut", func(t *testing.T) string {
			return saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
		}, nil, answered{200, "he and then " + http1.ErrCut.Error()}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(c.url(t), refused(t)) // the last endpoint that is in would stay in
			if c.change != nil {
				c.change(&o)
			}
			up := open(t, o)
			x := request("POST", "/")
			x.Endpoint = up.Endpoints()[0]
			if got := forward(t, x, up, new(client)); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if got := up.IsReady(up.Endpoints()[0]); got == c.speaks {
				t.Errorf("afterwards the endpoint is ready: %v", got)
			}
		})
	}
}

func TestWhatTheGatewayDoesNotAskIs503(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		busy, release := make(chan struct{}, 1), make(chan struct{})
		var asked atomic.Int32
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path == "/busy" {
				busy <- struct{}{}
				<-release
			}
			w.WriteHeader(500)
		}))
		o.Protocol, o.Breaker = protocol, upstream.BreakerOptions{Failures: 2, Open: time.Hour, Probes: 1, Window: time.Minute}
		up := open(t, o)
		if protocol == upstream.H1 {
			o.Pool, o.Breaker = upstream.PoolOptions{Connections: 1, Wait: time.Millisecond}, upstream.BreakerOptions{}
			full := open(t, o)
			first := make(chan answered)
			go func() { first <- forward(t, request("GET", "/busy"), full, new(client)) }()
			<-busy
			if got := forward(t, request("GET", "/"), full, new(client)); got != (answered{503, "upstream is busy"}) {
				t.Errorf("with a full pool: %v", got)
			}
			release <- struct{}{}
			if got := <-first; got.status != 500 {
				t.Error(got)
			}
		}
		close(release)
		asked.Store(0)
		for range 2 {
			if got := forward(t, request("GET", "/"), up, new(client)); got.status != 500 {
				t.Error(got)
			}
		}
		if got := forward(t, request("GET", "/"), up, new(client)); got != (answered{503, "upstream is failing, try again later"}) || asked.Load() != 2 {
			t.Errorf("with an open breaker: %v after %d requests", got, asked.Load())
		}
		o = options(refused(t))
		o.Endpoints[0].Weight = 0
		if got := forward(t, request("GET", "/"), open(t, o), new(client)); got != (answered{503, "no upstream is ready"}) {
			t.Errorf("with a drained endpoint: %v", got)
		}
	})
}

// breaking is a body that gives some bytes, and then no more.
type breaking struct {
	io.Reader
	err error
}

func (b breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestABodyThatDoesNotComeIsTheClientsFault(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), refused(t))
		o.Protocol = protocol
		up := open(t, o)
		for name, c := range map[string]struct {
			err  error
			want answered
		}{
			"cut":      {io.ErrUnexpectedEOF, answered{core.StatusClientGone, "client left"}},
			"too slow": {http1.ErrTimeout, answered{408, "request body took too long"}},
			"too long": {core.ErrBodyTooLarge, answered{413, "request body too large"}},
			"refused":  {core.Fail(422, "no such thing", nil), answered{422, "no such thing"}},
		} {
			x := request("POST", "/", carrying(breaking{strings.NewReader("hello"), c.err}, -1))
			x.Endpoint = up.Endpoints()[0]
			if got := forward(t, x, up, new(client)); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
		if up.Ready() != 2 {
			t.Error("it spoke against the endpoint")
		}
	})
}

func TestAClientThatLeavesEndsItsRequest(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		asked, left := make(chan struct{}), make(chan struct{})
		o := options(served(t, protocol, func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
			close(left)
		}), refused(t))
		o.Protocol = protocol
		up := open(t, o)
		x := request("GET", "/")
		x.Endpoint = up.Endpoints()[0]
		go func() {
			<-asked
			x.Lifeline.Break()
		}()
		if got := forward(t, x, up, new(client)); got != (answered{core.StatusClientGone, "client left"}) || up.Ready() != 2 {
			t.Errorf("%v, %d endpoints are ready", got, up.Ready())
		}
		<-left
		if got := forward(t, x, up, new(client)); got.status != core.StatusClientGone {
			t.Errorf("one who has left before: %v", got)
		}
	})
}

// TestCallsOfGRPCEndWithTheirOwnTime, which is nobody's fault; what is no time is none.
func TestCallsOfGRPCEndWithTheirOwnTime(t *testing.T) {
	o := options(served(t, upstream.H2C, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			<-r.Context().Done()
			return
		}
		time.Sleep(20 * time.Millisecond) // longer than what the texts would mean if they meant anything
	}), refused(t))
	o.Protocol = upstream.H2C
	up := open(t, o)
	for timeout, want := range map[string]int{
		"1m": 504, "1000u": 504, "1000000n": 504, "0S": 504, "1H": 200, "99999999H": 200, "": 200,
		"1": 200, "m": 200, "000000001n": 200, "-1m": 200, "1.5m": 200, "1x": 200,
	} {
		path := "/"
		if want == 504 {
			path = "/hangs"
		}
		x := request("POST", path, with("Content-Type", "application/grpc", "Grpc-Timeout", timeout))
		x.Request.Proto, x.Endpoint = core.HTTP2, up.Endpoints()[0]
		if got := forward(t, x, up, new(client)); got.status != want {
			t.Errorf("%q: %v, want %d", timeout, got, want)
		}
	}
	if up.Ready() != 2 {
		t.Error("it spoke against the endpoint")
	}
}

func TestInterimAnswersReachTheClient(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(102)
			_, _ = io.Copy(w, r.Body)
		}))
		o.Protocol = protocol
		c := new(client)
		x := request("PUT", "/", carrying(bytes.NewReader(make([]byte, 5)), 5))
		x.Request.Expect = true
		got := forward(t, x, open(t, o), c)
		if got.status != 200 || len(got.text) != 5 || fmt.Sprint(c.informed) != "[103 102]" || c.continued != 1 {
			t.Errorf("%v; informed of %v, asked for the body %d times", got, c.informed, c.continued)
		}
	})
}

// TestAnAnswerBeforeTheBodysEndEndsTheBody whose client rests: nobody waits for more of it.
func TestAnAnswerBeforeTheBodysEndEndsTheBody(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 5))
			w.Header().Set("Connection", "close")
			w.WriteHeader(403)
		}))
		o.Protocol = protocol
		in, out := io.Pipe()
		c := &client{stopped: func() { _ = out.CloseWithError(http1.ErrTimeout) }}
		go func() { _, _ = io.WriteString(out, "hello") }()
		x := request("POST", "/", carrying(in, -1))
		if got := forward(t, x, open(t, o), c); got.status != 403 || x.Request.Uploading {
			t.Errorf("%v, and somebody reads on: %v", got, x.Request.Uploading)
		}
		_ = in.Close()
	})
}

func TestFaultsOfBodiesWithoutACauseAreOfClientsThatLeft(t *testing.T) {
	if got := proxy.BodyFault(errors.New("reset")); got.Status != core.StatusClientGone || !got.Close {
		t.Error(got)
	}
}
