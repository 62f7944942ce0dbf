package server

import (
	"net/http"
	"strconv"

	"github.com/moongate/moongate/core"
)

// asksCode tells whether an answer of the gateway or a filter has to say what it says in the words of gRPC.
func asksCode(x *core.Exchange) bool {
	w := &x.Response
	return w.Status >= 400 && w.Source != core.FromUpstream && x.Request.IsGRPC()
}

// grpcHead turns an error into an answer of trailers alone: status 200 and, in the one block of headers that ends the stream, the code and
// the text of the error. Its other lines stay.
func (c *stream) grpcHead() {
	w := &c.x.Response
	message := w.Message
	if message == "" {
		message = core.StatusText(w.Status)
	}
	h := c.w.Header()
	for _, f := range w.Header.Fields() {
		if !f.Kind.Hop() && f.Kind != core.KindContentLength && f.Kind != core.KindContentType && f.Kind != core.KindContentEncoding {
			c.lines.add(&f)
		}
	}
	c.lines.fill(h)
	h["Content-Length"] = nil
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{strconv.Itoa(grpcCode(w.Status))}
	h["Grpc-Message"] = []string{grpcMessage(message)}
	w.Started = true
	c.w.WriteHeader(http.StatusOK)
}

// Codes of gRPC.
const (
	grpcCancelled         = 1
	grpcUnknown           = 2
	grpcDeadlineExceeded  = 4
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// grpcCode is what a status means to clients of gRPC, by its document "HTTP to gRPC Status Code Mapping"; where the gateway knows more than
// that maps, the code says so.
func grpcCode(status int) int {
	switch status {
	case 400:
		return grpcInternal
	case 401:
		return grpcUnauthenticated
	case 403:
		return grpcPermissionDenied
	case 404, 501, 505:
		return grpcUnimplemented
	case 408, 504:
		return grpcDeadlineExceeded
	case 413, 414, 431:
		return grpcResourceExhausted
	case 429, 502, 503:
		return grpcUnavailable
	case core.StatusClientGone:
		return grpcCancelled
	}
	return grpcUnknown
}

// grpcMessage encodes a text: what is not printable ASCII, and the percent sign, as percent and two digits.
func grpcMessage(s string) string {
	out := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c <= '~' && c != '%' {
			out = append(out, c)
		} else {
			out = append(out, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return string(out)
}
