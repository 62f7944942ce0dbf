package proxy_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/proxy"
	"github.com/moongate/moongate/core/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// options are those of an upstream whose limits no test reaches unless it says so.
func options(urls ...string) upstream.Options {
	o := upstream.Options{
		Name: "u", Host: "upstream", Protocol: upstream.H1, Pool: upstream.PoolOptions{Connections: 4, Wait: patience}, Upgrades: 1,
		Limits: core.Limits{Connect: patience, FirstByte: patience, IdleRead: patience, Total: patience, UpgradeIdle: patience},
		Health: upstream.HealthOptions{Failures: 1, Out: time.Hour, Probes: 1},
	}
	for _, url := range urls {
		o.Endpoints = append(o.Endpoints, upstream.Target{URL: url, Weight: 1})
	}
	return o
}

func open(t *testing.T, o upstream.Options) *upstream.Upstream {
	t.Helper()
	up, err := upstream.New(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	up.Commit()
	t.Cleanup(func() { up.Retire(nil) })
	return up
}

// served starts an endpoint that speaks protocol.
func served(t *testing.T, protocol string, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(protocol == upstream.H1)
	s.Config.Protocols.SetUnencryptedHTTP2(protocol == upstream.H2C)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// scripted starts an endpoint that does with each connection what f says, and closes it.
func scripted(t *testing.T, f func(nc net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, nc)
			mu.Unlock()
			all.Go(func() {
				defer nc.Close()
				f(nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, nc := range conns {
			nc.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

// refused is an address where nobody listens.
func refused(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// both runs a test with endpoints of both versions of HTTP.
func both(t *testing.T, test func(t *testing.T, protocol string)) {
	for _, protocol := range []string{upstream.H1, upstream.H2C} {
		t.Run(protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// request is an exchange whose request stages are done.
func request(method, path string, change ...func(x *core.Exchange)) *core.Exchange {
	x := new(core.Exchange)
	x.Route = &core.Route{Name: "r", BodyBuffer: 1 << 20}
	x.Times.Start = core.Now()
	x.Times.Filtered = x.Times.Start
	r := &x.Request
	r.Method, r.Scheme, r.Host = method, "http", []byte("gateway.test")
	raw, query, has := strings.Cut(path, "?")
	r.RawPath, r.Path, r.RawQuery, r.HasQuery = []byte(raw), []byte(raw), []byte(query), has
	r.RemoteAddr = netip.MustParseAddrPort("192.0.2.7:5000")
	r.ClientIP = r.RemoteAddr.Addr()
	r.Header.Add("Host", "gateway.test")
	r.Body.Attach(nil, 0)
	for _, f := range change {
		f(x)
	}
	return x
}

// with adds lines to the request's head, names and values in turn.
func with(lines ...string) func(*core.Exchange) {
	return func(x *core.Exchange) {
		for i := 0; i < len(lines); i += 2 {
			x.Request.Header.Add(lines[i], lines[i+1])
		}
	}
}

// carrying gives the request a body that streams.
func carrying(body io.Reader, length int64) func(*core.Exchange) {
	return func(x *core.Exchange) { x.Request.Body.Attach(body, length) }
}

// client is the client's end, as far as the leg to the endpoint sees it.
type client struct {
	mu        sync.Mutex
	informed  []int
	continued int
	stopped   func() // what ends a pending read of the request's body
}

func (c *client) Continue() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.continued++
	return nil
}

func (c *client) Inform(status int, _ *core.Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.informed = append(c.informed, status)
	return nil
}

func (c *client) Respond() error { return nil }

func (c *client) StopBody() {
	if c.stopped != nil {
		c.stopped()
	}
}

func (c *client) ResumeBody() bool { return false }
func (c *client) Ease()            {}

// answered is what a leg brought: status, text of the body or of the fault.
type answered struct {
	status int
	text   string
}

// forward brings an exchange to up and reads the answer to its end.
func forward(t *testing.T, x *core.Exchange, up *upstream.Upstream, c core.Client) answered {
	t.Helper()
	leg, err := proxy.Forward(x, up, c)
	if err != nil {
		fault, ok := errors.AsType[*core.Error](err)
		if !ok {
			t.Fatalf("not an error with a status: %v", err)
		}
		return answered{fault.Status, fault.Public}
	}
	body, err := io.ReadAll(&x.Response.Body)
	if err != nil {
		body = append(body, " and then "+err.Error()...)
	}
	got := answered{x.Response.Status, string(body)}
	leg.Finish()
	leg.Release()
	return got
}
