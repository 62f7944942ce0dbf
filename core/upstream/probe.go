package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/proxyproto"
)

// probe is one kind of check of one endpoint. Each check has a connection of its own, opened as requests open theirs: that new ones can be had is
// half of what is to be known.
type probe struct {
	opts  *CheckOptions
	at    *core.Endpoint
	guard Guard
	proxy int         // version of the PROXY header, which names nobody; 0: none
	tls   *tls.Config // nil: without
	over  http.Transport
}

// maxChecked is how much of an answer's body is looked at.
const maxChecked = 64 << 10

// newProbe prepares the checks of an endpoint; p is the pool of its connections.
func newProbe(o *CheckOptions, e *core.Endpoint, p *Pool, up Options) func(context.Context) error {
	c := &probe{opts: o, at: e, guard: p.guard, proxy: up.Proxy}
	two := up.Protocol == H2 || up.Protocol == H2C
	if p.tls != nil {
		if c.tls = p.tls.Clone(); two {
			c.tls.NextProtos = []string{"h2"}
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!two)
	protocols.SetUnencryptedHTTP2(two) // TLS is below
	c.over = http.Transport{
		Protocols: protocols, DisableCompression: true, MaxResponseHeaderBytes: AnswerHead,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.connect(ctx) },
	}
	switch o.Kind {
	case CheckTCP:
		return c.tcp
	case CheckGRPC:
		return c.grpc
	}
	return c.http
}

// connect opens a connection and shakes hands where the endpoint has TLS.
func (c *probe) connect(ctx context.Context) (net.Conn, error) {
	nc, err := dial(ctx, c.at.Address, c.guard)
	if err != nil {
		return nil, err
	}
	if c.proxy != 0 {
		if _, err = nc.Write(proxyproto.Header{}.Append(nil, c.proxy)); err != nil {
			_ = nc.Close()
			return nil, err
		}
	}
	if c.tls == nil {
		return nc, nil
	}
	secure := tls.Client(nc, c.tls)
	if err = secure.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("no TLS handshake: %w", err)
	}
	if len(c.tls.NextProtos) > 0 && secure.ConnectionState().NegotiatedProtocol != "h2" {
		_ = nc.Close()
		return nil, errNotHTTP2
	}
	return secure, nil
}

func (c *probe) tcp(ctx context.Context) error {
	nc, err := c.connect(ctx)
	if err != nil {
		return err
	}
	return nc.Close()
}

func (c *probe) http(ctx context.Context) error {
	target, err := url.ParseRequestURI(c.opts.Path)
	if err != nil {
		return err
	}
	target.Scheme, target.Host = "http", c.opts.Host
	r := &http.Request{Method: c.opts.Method, URL: target, Host: c.opts.Host, Header: http.Header{"User-Agent": {"moongate"}, "Accept": {"*/*"}}}
	return c.ask(r.WithContext(ctx), func(resp *http.Response) error {
		if !slices.ContainsFunc(c.opts.Status, func(s StatusRange) bool { return s.From <= resp.StatusCode && resp.StatusCode <= s.To }) {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		if c.opts.Body == nil {
			return nil
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxChecked))
		if err != nil {
			return err
		}
		if !c.opts.Body.Match(body) {
			return errCheckBody
		}
		return nil
	})
}

var errCheckBody = errors.New("the body does not match")

// ask sends a request over a connection of its own, which is closed when judge has seen the answer.
func (c *probe) ask(r *http.Request, judge func(*http.Response) error) error {
	conn, err := c.over.NewClientConn(r.Context(), "http", "endpoint:1") // connect knows the address
	if err != nil {
		return err
	}
	defer conn.Close()
	resp, err := conn.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return judge(resp)
}
