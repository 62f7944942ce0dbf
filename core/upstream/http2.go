package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/moongate/moongate/core"
)

// The protocols that endpoints may speak.
const (
	H1  = "h1"  // HTTP/1.1
	H2  = "h2"  // HTTP/2 over TLS
	H2C = "h2c" // HTTP/2 without TLS, known beforehand
)

// Bounds of the connections that speak HTTP/2.
const (
	answerWindow = 256 << 10 // bytes of an answer's body that may wait to be read
	answerHead   = 256 << 10 // bytes of an answer's head
	pingAfter    = 15 * time.Second
)

// newTransport makes the connections of HTTP/2 to one endpoint; c is nil without TLS. Requests share connections; another is opened when all
// have as many streams as the endpoint allows.
func newTransport(address string, c *tls.Config, o PoolOptions) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP2(c != nil)
	p.SetUnencryptedHTTP2(c == nil)
	return &http.Transport{
		Protocols:              p,
		TLSClientConfig:        c,
		TLSHandshakeTimeout:    maxDial,
		DisableCompression:     true,
		MaxConnsPerHost:        o.Connections,
		MaxIdleConnsPerHost:    o.Connections,
		IdleConnTimeout:        idleLimit,
		MaxResponseHeaderBytes: answerHead,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, maxDial)
			defer cancel()
			return dial(ctx, address)
		},
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: answerWindow, SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}
}

// maxDial bounds a dial whose request has gone; the request's own limit is its leg's matter.
const maxDial = 10 * time.Second

// Transport carries requests to an endpoint of this upstream over HTTP/2; nil when the upstream speaks HTTP/1.1.
func (u *Upstream) Transport(e *core.Endpoint) *http.Transport { return u.live[e.Index].transport }
