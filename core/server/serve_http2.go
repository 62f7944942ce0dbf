package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"sync"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// stream is one request over HTTP/2 and the client's end of its exchange.
type stream struct {
	srv     *Server
	conn    *conn2
	w       http.ResponseWriter
	control *http.ResponseController
	x       *core.Exchange
	body    body2
	broken  bool // the answer could not be brought to its end
	stall   stall
	piece   int // of a body whose client opens its window little by little
	lines   lines

	mu     sync.Mutex // guards what follows against the end of the request's context
	live   bool
	socket *socket // nil until the stream has switched to WebSocket
}

var streams = sync.Pool{New: func() any { return new(stream) }}

// serve is one request's way from the standard library's server to the handler and back.
func (h *http2Leg) serve(w http.ResponseWriter, r *http.Request) {
	c := streams.Get().(*stream)
	set := h.srv.settings.Load()
	c.srv, c.w, c.control = h.srv, w, http.NewResponseController(w)
	c.stall.begin(&set.pace)
	c.conn, _ = r.Context().Value(connKey{}).(*conn2)
	c.conn.served.Add(1)
	c.x = exchanges.Get().(*core.Exchange)
	c.body = body2{src: r, c: c}
	fault := c.readHead(r, set)
	c.begin()
	stop := context.AfterFunc(r.Context(), c.left)
	defer c.release(stop)
	switch {
	case fault != nil:
		h.srv.handler.Refuse(c.x, c, fault)
	case c.x.Request.Extended:
		c.serveSocket()
	default:
		h.srv.handler.Serve(c.x, c)
	}
	if c.broken || !c.x.Response.Started || c.cutOff() {
		panic(http.ErrAbortHandler) // resets the stream
	}
}

func (c *stream) begin() {
	c.srv.inFlight.Add(1)
	c.srv.inFlight2.Add(1)
	c.mu.Lock()
	c.live = true
	c.mu.Unlock()
}

// left is called when the client has reset the stream or is gone.
func (c *stream) left() {
	var why error
	if c.srv.cutting.Load() {
		why = core.ErrDrained
	}
	c.mu.Lock()
	s := c.socket
	switch {
	case !c.live:
	case s == nil:
		c.x.Lifeline.BreakFor(why)
	default:
		if s.gone = true; s.left != nil {
			defer s.left()
		}
	}
	c.mu.Unlock()
}

// release runs whatever happened: after a panic, too, the exchange is used again.
func (c *stream) release(stop func() bool) {
	c.mu.Lock()
	c.live = false
	c.mu.Unlock()
	c.srv.inFlight.Add(-1)
	c.srv.inFlight2.Add(-1)
	x := c.x
	stays, rests := stop(), c.stall.stop() // both: a timer that goes on holds all that the connection had
	x.Reset()
	exchanges.Put(x)
	if stays && rests { // otherwise left or look may still come
		c.reset()
		streams.Put(c)
	}
}

// readHead fills the request from what the standard library made of it (RFC 9113 section 8.3).
func (c *stream) readHead(r *http.Request, set *limits) *core.Error {
	q := &c.x.Request
	c.x.Times.Start = core.Now()
	q.LocalAddr = c.conn.local
	q.RemoteAddr, q.Scheme, q.Proto, q.Method = c.conn.remote, "http", core.HTTP2, r.Method
	if c.conn.secure != nil {
		q.Scheme, q.TLS = "https", c.conn.secure.info
	}
	q.Host, q.Listener = core.Bytes(r.Host), c.conn.by.Name
	if fault := c.readTarget(r, set); fault != nil {
		return fault
	}
	if fault := c.readFields(r, set); fault != nil {
		return fault
	}
	if !http1.IsAuthority(q.Host) {
		return errAuthority
	}
	if c.conn.secure != nil && c.conn.secure.misdirected(q.Host) {
		return errMisdirected
	}
	return c.attachBody(r)
}

var (
	errAuthority = &core.Error{Status: 400, Public: "missing or malformed :authority"}
	errHosts     = &core.Error{Status: 400, Public: "Host beside another :authority"}
	errPath      = &core.Error{Status: 400, Public: "malformed :path"}
	errMethod    = &core.Error{Status: 400, Public: "malformed :method"}
	errConnect   = &core.Error{Status: 501, Public: "CONNECT is not served here"}
	errProtocol  = &core.Error{Status: 501, Public: ":protocol may only be websocket"}
	errExtended  = &core.Error{Status: 400, Public: ":protocol goes with CONNECT alone"}
	errHandshake = &core.Error{Status: 400, Public: "websocket handshake with a content-length"}
	errTrace     = &core.Error{Status: 501, Public: "TRACE is not served here"}
	errLongURL   = &core.Error{Status: 414, Public: "request target too long"}
	errBigHead   = &core.Error{Status: 431, Public: "header too large"}
	errLength    = &core.Error{Status: 400, Public: "malformed, repeated or wrong content-length"}
	errBlank     = &core.Error{Status: 400, Public: "header value with white space at its end"}
	errTypes     = &core.Error{Status: 400, Public: "repeated content-type"}
	errExpect    = &core.Error{Status: 417, Public: "unknown expectation"}
	errTE        = &core.Error{Status: 400, Public: "te may only be trailers"}
	errShortBody = &core.Error{Status: 400, Public: "request body of another length than announced"}
)

// protocolKey is where the standard library puts :protocol, beside the lines of the head.
const protocolKey = ":protocol"

func (c *stream) readTarget(r *http.Request, set *limits) *core.Error {
	q, uri := &c.x.Request, r.RequestURI
	target := core.Bytes(uri)
	protocol := r.Header[protocolKey]
	extended := protocol != nil && q.Method == http.MethodConnect && set.WebSockets
	switch {
	case !core.IsToken(core.Bytes(q.Method)): // the standard library asks nothing of :method
		q.RawPath = core.Bytes("/")
		return errMethod
	case q.Method == http.MethodConnect && !extended:
		q.RawPath = core.Bytes("/")
		return errConnect
	case q.Method == "TRACE":
		q.RawPath = core.Bytes("/")
		return errTrace
	case len(target) > set.Head.Line:
		q.RawPath = core.Bytes("/")
		return errLongURL
	case uri == "*" && q.Method == "OPTIONS":
		q.RawPath = target
		return nil
	case len(target) == 0 || target[0] != '/':
		q.RawPath = core.Bytes("/")
		return errPath
	}
	for _, b := range target {
		if b <= ' ' || b >= 0x7f || b == '#' {
			q.RawPath = core.Bytes("/")
			return errPath
		}
	}
	q.RawPath = target
	if i := strings.IndexByte(uri, '?'); i >= 0 {
		q.RawPath, q.RawQuery, q.HasQuery = target[:i], target[i+1:], true
	}
	switch {
	case protocol != nil && !extended:
		return errExtended
	case extended && !strings.EqualFold(protocol[0], webSocket):
		return errProtocol
	case extended:
		c.extend()
	}
	return nil
}

// maxFields2 bounds the lines of one head, as the other protocol does.
const maxFields2 = 500

func (c *stream) readFields(r *http.Request, set *limits) *core.Error {
	q := &c.x.Request
	size, lines, trailers := len(r.RequestURI)+len(r.Host)+len(r.Method), 0, false
	for name, values := range r.Header {
		if name == protocolKey {
			continue
		}
		if q.Extended {
			passes := false
			if name, passes = spelled(name); !passes {
				continue
			}
		}
		key := core.Bytes(name)
		kind := core.KindOf(key)
		switch kind {
		case core.KindHost:
			if len(values) > 1 || values[0] != r.Host {
				return errHosts
			}
			continue
		case core.KindContentType:
			if len(values) > 1 {
				return errTypes
			}
		case core.KindExpect:
			return errExpect
		case core.KindTE:
			trailers = true
		}
		for _, v := range values {
			if blankAtAnEnd(v) {
				return errBlank
			}
			size += len(name) + len(v) + 4
			q.Header.Append(key, core.Bytes(v), kind)
		}
		lines += len(values)
	}
	for name := range r.Trailer { // the standard library takes the announcement away
		q.Header.Append(core.Bytes("Trailer"), core.Bytes(name), core.KindTrailer)
	}
	if q.HeadSize = int64(size); size > set.Head.Head || lines > maxFields2 {
		q.Header.Reset()
		return errBigHead
	}
	if trailers && !core.EqualFoldString(q.Header.GetKind(core.KindTE), "trailers") {
		return errTE
	}
	return nil
}

// blankAtAnEnd tells whether a value begins or ends with what HTTP/1.1 does not count as part of one, and HTTP/2 does not allow (RFC 9113 section
// 8.2.1): filters here would see another value than the upstream.
func blankAtAnEnd(v string) bool {
	return v != "" && (v[0] == ' ' || v[0] == '\t' || v[len(v)-1] == ' ' || v[len(v)-1] == '\t')
}

// attachBody joins the body and holds its announced length against what the frames say.
func (c *stream) attachBody(r *http.Request) *core.Error {
	q := &c.x.Request
	announced := r.Header["Content-Length"]
	if len(announced) > 1 || len(announced) == 1 && !digits(announced[0]) {
		return errLength
	}
	switch {
	case q.Extended && len(announced) > 0:
		return errHandshake
	case q.Extended: // what comes is not the body of a request
		q.Body.Attach(nil, 0)
	case r.ContentLength == 0 && len(announced) == 1 && strings.Trim(announced[0], "0") != "":
		return errLength // the head was the end of the stream
	case r.ContentLength == 0:
		q.Body.Attach(nil, 0)
	default:
		q.Body.Attach(&c.body, r.ContentLength)
		if q.IsGRPC() { // who speaks when he has something to say
			c.Ease()
		}
	}
	return nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 18
}

// body2 is a request's body as the frames bring it.
type body2 struct {
	src *http.Request
	c   *stream
}

// Read implements io.Reader: it returns io.EOF only after the last byte, with the trailers at hand.
func (b *body2) Read(p []byte) (int, error) {
	o := &b.c.stall.reading
	began := b.c.watch(o)
	n, err := b.src.Body.Read(p)
	o.done(began, n)
	switch {
	case err == nil:
	case err == io.EOF:
		b.trailers()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = b.c.why(o, http1.ErrTimeout)
	case strings.Contains(err.Error(), "declared"): // a Content-Length that the frames do not hold to
		err = errShortBody
	}
	return n, err
}

func (b *body2) trailers() {
	trailer := &b.c.x.Request.Body.Trailer
	for name, values := range b.src.Trailer {
		key := core.Bytes(textproto.CanonicalMIMEHeaderKey(name))
		for _, v := range values {
			trailer.Append(key, core.Trim(core.Bytes(v)), core.KindOf(key))
		}
	}
}
