package proxy

import (
	"net/netip"
	"time"

	"github.com/moongate/moongate/core/proxyproto"
	"github.com/moongate/moongate/core/upstream"
)

// connect takes a connection to the endpoint, within what is left of the time for the head. Where the upstream wants to hear by a PROXY header who the client is, it is a new one.
func (l *Leg) connect(left time.Duration) (*upstream.Conn, error) {
	pool := l.up.Pool(l.attempt.Endpoint)
	version := l.up.Proxy()
	if version == 0 {
		return pool.Get(l.limits.Connect, left, &l.x.Lifeline)
	}
	return pool.Open(l.limits.Connect, left, &l.x.Lifeline, l.said().Append(nil, version))
}

// said is what a PROXY header tells of the client: its address, after trusted proxies were heard, with its port where that is known.
func (l *Leg) said() proxyproto.Header {
	r := &l.x.Request
	source := r.RemoteAddr
	if r.ClientIP != source.Addr() {
		source = netip.AddrPortFrom(r.ClientIP, 0)
	}
	return proxyproto.Header{Source: source, Destination: r.LocalAddr}
}
