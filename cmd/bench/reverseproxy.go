package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// reverseProxyVerb makes this program the peer that is measured instead of the one that measures.
const reverseProxyVerb = "reverse-proxy"

// reverseProxy forwards everything with the standard library alone, tuned as its documents say: a large idle pool, pooled buffers.
func reverseProxy(listen, upstream string) error {
	target, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	return http.ListenAndServe(listen, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true},
		BufferPool: &buffers{sync.Pool{New: func() any { return new([32 << 10]byte) }}},
	})
}

// buffers lends copy buffers.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte    { return b.pool.Get().(*[32 << 10]byte)[:] }
func (b *buffers) Put(buf []byte) { b.pool.Put((*[32 << 10]byte)(buf)) }
