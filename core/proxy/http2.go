package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/upstream"
)

// round is a leg's request over HTTP/2, which the standard library's transport carries. The transport works in goroutines of its own that
// may outlast the exchange by a little: what they touch of it is guarded, and closed to them in the end.
type round struct {
	l      *Leg
	cancel context.CancelCauseFunc
	ctx    context.Context
	conn   upstream.Shared
	resp   *http.Response
	body   outgoing

	deadline core.Instant // of the client, 0: none
	wrote    atomic.Int64 // core.Instant at which all of the request was written
	clock    *time.Timer  // what looks after the time until the head; nil before it is asked for
	reading  watch        // what looks after the time between two reads of the answer

	mu       sync.Mutex // guards over, interims, clock and the client's end against interim answers
	over     bool
	interims int // answers of 1xx
}

var (
	errDeadline = fmt.Errorf("the call's own deadline: %w", http1.ErrTimeout)
	errEnded    = errors.New("exchange has ended")
)

// tryHTTP2 is what try does where the endpoint speaks HTTP/2.
func (l *Leg) tryHTTP2(s *upstream.Streams, left time.Duration) error {
	r := &round{l: l}
	l.round = r
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	l.x.Request.Upgrade = false
	began := core.Now()
	r.body.begin(r, began)
	if r.deadline = deadline(l.x); r.deadline != 0 {
		left = min(left, r.deadline.Sub(began))
	}
	conn, err := s.Get(l.limits.Connect, left, &l.x.Lifeline)
	r.conn = conn
	now := core.Now()
	switch {
	case err != nil && r.deadline != 0 && now >= r.deadline:
		return &step{receiving, errDeadline}
	case err != nil:
		return &step{connecting, err}
	}
	l.x.Times.Connected = now
	if !l.x.Lifeline.Hold(r) {
		conn.Release()
		return &step{connecting, upstream.ErrClientGone}
	}
	ctx := httptrace.WithClientTrace(r.ctx, r.trace())
	r.mu.Lock()
	r.clock = time.AfterFunc(r.patience(now), r.look)
	r.mu.Unlock()
	resp, err := conn.RoundTrip(r.request().WithContext(ctx))
	r.close()
	l.x.Times.Sent = core.Instant(r.wrote.Load())
	if err != nil {
		return r.fault(err)
	}
	r.resp = resp
	r.body.settle()
	return r.receive()
}

// close ends the time in which the head is waited for.
func (r *round) close() {
	r.mu.Lock()
	r.over = true
	if r.clock != nil {
		r.clock.Stop()
	}
	r.mu.Unlock()
}

// Cut implements core.Cutter.
func (r *round) Cut() { r.cancel(upstream.ErrClientGone) }

// trace follows the request where the transport has it.
func (r *round) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				r.sent(core.Now())
			}
		},
		Got1xxResponse: r.interim,
	}
}

// sent notes that all of the request was written: the endpoint's time for the head begins.
func (r *round) sent(now core.Instant) {
	r.wrote.Store(int64(now))
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.clock.Reset(r.patience(now))
	}
}

// interim passes an interim answer on, unless the exchange has gone on without it.
func (r *round) interim(status int, header textproto.MIMEHeader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interims++
	switch {
	case r.interims > maxInterims:
		return &malformed{errInterims}
	case r.over || status == 100:
		return nil
	case status == 101: // which HTTP/2 does not have (RFC 9113 section 8.6)
		return &malformed{errUnasked}
	}
	var h core.Header
	fillHeader(&h, http.Header(header))
	return r.l.client.Inform(status, &h)
}

// fault tells how far a round came that ended with an error.
func (r *round) fault(err error) error {
	if cause := context.Cause(r.ctx); cause != nil {
		err = cause
	}
	switch {
	case r.body.fault() != nil:
		r.l.upload.err = &http1.ReadError{Err: r.body.fault()}
		return &step{sending, err}
	case errors.Is(err, http1.ErrTimeout), errors.Is(err, upstream.ErrClientGone):
		return &step{receiving, err}
	case strings.Contains(err.Error(), "COMPRESSION_ERROR"): // which the transport also calls a field that is longer than all it takes
		return &step{receiving, &malformed{fmt.Errorf("%w, or %w", err, errLargeHead)}}
	case strings.Contains(err.Error(), "malformed"), strings.Contains(err.Error(), "header list"), foundMalformed(err):
		return &step{receiving, &malformed{err}}
	}
	return &step{receiving, err}
}

// foundMalformed tells whether a stream has ended because the transport took the answer for no HTTP, and not because the endpoint has reset it.
func foundMalformed(err error) bool {
	var reset streamError
	return errors.As(err, &reset) && reset.Code == protocolError && reset.Cause != nil && reset.Cause.Error() != "received from peer"
}

// streamError is the standard library's error of a stream that an endpoint has reset, as it shows it to others.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream reset with code %d", e.Code) }

// Codes of RFC 9113 section 7. A stream that is refused is one of a request that the endpoint has not looked at (section 8.7).
const (
	protocolError = 1
	refusedStream = 7
)

// unseen tells whether a round ended with an error that says, or means, that the endpoint has done nothing about the request.
func (r *round) unseen(err error) bool {
	if context.Cause(r.ctx) != nil {
		return false
	}
	var reset streamError
	if errors.As(err, &reset) {
		return reset.Code == refusedStream
	}
	text := err.Error()
	return strings.Contains(text, "client conn not usable") || strings.Contains(text, "client conn could not be established") ||
		strings.Contains(text, "graceful shutdown GOAWAY")
}

// stale tells whether a round ended because its connection, which had served before, was found closed before an answer came.
func (r *round) stale(err error) bool {
	return r.resp == nil && r.conn.Reused && r.conn.Lost() && context.Cause(r.ctx) == nil &&
		!errors.As(err, new(streamError)) && !errors.As(err, new(*malformed))
}

// patience is the time until the clock looks again.
func (r *round) patience(now core.Instant) time.Duration {
	left := r.phaseTime(now)
	if r.l.retrying { // nothing of the body is waited for
		left = min(left, r.l.hard.Sub(now))
	}
	if r.deadline != 0 {
		left = min(left, r.deadline.Sub(now))
	}
	return left
}

// phaseTime is what is left of the limit of the phase that the round is in.
func (r *round) phaseTime(now core.Instant) time.Duration {
	l := r.l
	if wrote := core.Instant(r.wrote.Load()); wrote > 0 {
		if r.body.none {
			return l.headTime(wrote) - now.Sub(wrote)
		}
		return min(l.limits.FirstByte, l.limits.Total) - now.Sub(wrote)
	}
	return l.limits.IdleRead - now.Sub(r.body.waiting(now))
}

// look ends the round when its time is over. While the request's body is on its way, the clock of the answer stands still; what must move
// on then is the body.
func (r *round) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	now := core.Now()
	left := r.patience(now)
	if left > 0 {
		r.clock.Reset(left)
		return
	}
	if r.deadline != 0 && now >= r.deadline {
		r.cancel(errDeadline)
		return
	}
	r.cancel(http1.ErrTimeout)
}

// request is the exchange's request as the transport takes it. Path and query go out byte for byte.
func (r *round) request() *http.Request {
	l := r.l
	q, e := &l.x.Request, l.attempt.Endpoint
	host := string(l.host())
	target := string(l.appendTarget(nil))
	u := &url.URL{Scheme: e.Scheme, Host: e.Address}
	path, query, has := strings.Cut(target, "?")
	u.Opaque, u.RawQuery, u.ForceQuery = path, query, has
	if strings.HasPrefix(path, "//") { // which the URL would take for a host
		u.Opaque = e.Scheme + "://" + host + path
	}
	out := &http.Request{Method: q.Method, URL: u, Host: host, Header: l.requestHeader(), ContentLength: q.Body.Length()}
	if !r.body.none {
		out.Body = &r.body
		out.Trailer = announced(&q.Header, q.Body.Forbidden)
		r.body.trailer = out.Trailer
	}
	return out
}

// requestHeader is the head's lines, the gateway's own among them.
func (l *Leg) requestHeader() http.Header {
	q := &l.x.Request
	h := make(http.Header, q.Header.Len()+6)
	for _, f := range q.Header.Fields() {
		switch {
		case f.Kind == core.KindTE:
			if core.HasItem(f.Value, "trailers") {
				h["Te"] = []string{"trailers"}
			}
			continue
		case !forwarded(f.Kind) && !(q.Own && forwardedOwn(f.Kind)):
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(string(f.Name))
		h[name] = append(h[name], string(core.Trim(f.Value)))
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = nil // none is invented
	}
	if len(l.x.TraceID) > 0 {
		h["X-Trace-Id"] = []string{string(l.x.TraceID)}
	}
	if q.Own {
		return h
	}
	own := l.appendForwarded(make([]byte, 0, 256))
	for line := range strings.SplitSeq(strings.TrimSuffix(string(own), "\r\n"), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		h[name] = append(h[name], value)
	}
	return h
}

// forwardedOwn tells whether a line of this kind goes out as it is when the gateway itself asks: it speaks for nobody then.
func forwardedOwn(k core.Kind) bool {
	switch k {
	case core.KindForwardedFor, core.KindForwardedProto, core.KindForwardedHost, core.KindForwardedPrefix:
		return true
	}
	return false
}

// forwarded tells whether a line of this kind goes out as it is; the others are written anew or end here.
func forwarded(k core.Kind) bool {
	switch k {
	case core.KindHost, core.KindContentLength, core.KindExpect, core.KindForwardedFor, core.KindForwardedProto, core.KindForwardedHost,
		core.KindForwardedPrefix, core.KindTraceID:
		return false
	}
	return !k.Hop()
}

// host is the authority that goes out.
func (l *Leg) host() []byte {
	switch host := l.up.Host(); host {
	case "upstream":
		return core.Bytes(l.attempt.Endpoint.Authority)
	case "client":
		if l.x.Request.Own {
			return core.Bytes(l.attempt.Endpoint.Authority)
		}
		return l.x.Request.Host
	default:
		return core.Bytes(host)
	}
}

// announced are the trailers that the client said would come; only those can be passed on.
func announced(h *core.Header, forbidden func([]byte) bool) http.Header {
	var t http.Header
	for _, f := range h.Fields() {
		if f.Kind != core.KindTrailer {
			continue
		}
		for item, rest := core.NextItem(f.Value); item != nil; item, rest = core.NextItem(rest) {
			if core.IsToken(item) && http1.TrailerAllowed(item) && (forbidden == nil || !forbidden(item)) {
				if t == nil {
					t = http.Header{}
				}
				t[textproto.CanonicalMIMEHeaderKey(string(item))] = nil
			}
		}
	}
	return t
}

// headFits holds a head to the limits of the other protocol. A field counts as one of its lines.
func headFits(h http.Header) error {
	size, lines := 0, 0
	for name, values := range h {
		lines += len(values)
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	switch {
	case size > maxHead:
		return errLargeHead
	case lines > http1.MaxFields:
		return errManyFields
	}
	return nil
}

// fillHeader takes lines over. White space around their values ends here: HTTP/1.1 does not count it, and HTTP/2 does not have it.
func fillHeader(h *core.Header, from http.Header) {
	for name, values := range from {
		key := core.Bytes(name)
		kind := core.KindOf(key)
		for _, v := range values {
			h.Append(key, core.Trim(core.Bytes(v)), kind)
		}
	}
}

// receive takes over the head of the answer and joins its body to the exchange.
func (r *round) receive() error {
	l, x := r.l, r.l.x
	w := &x.Response
	if w.Status = r.resp.StatusCode; w.Status < 200 || w.Status > 599 {
		w.Status = 0
		return &step{receiving, &malformed{errStatus}}
	}
	if err := headFits(r.resp.Header); err != nil {
		w.Status = 0
		return &step{receiving, &malformed{err}}
	}
	fillHeader(&w.Header, r.resp.Header)
	if err := wellFormed(r.resp.Status, &w.Header); err != nil {
		w.Status = 0
		return &step{receiving, &malformed{err}}
	}
	x.Times.FirstByte = core.Now()
	if x.Times.Sent == 0 {
		x.Times.Sent = x.Times.FirstByte
	}
	l.judge(w.Status)
	if !r.body.none && r.wrote.Load() == 0 {
		l.client.Ease()
	}
	l.mapLocation()
	ended := r.resp.ContentLength == 0 && w.Header.GetKind(core.KindContentLength) == nil // with its head; it may be trailers alone
	if ended || x.Request.Method == "HEAD" || !core.BodyAllowed(w.Status) {
		w.Body.Attach(nil, 0)
		r.trailers()
		return nil
	}
	hard := core.Instant(0)
	if l.limits.BodyTotal > 0 {
		hard = x.Times.FirstByte.Add(l.limits.BodyTotal)
	}
	if r.deadline != 0 && (hard == 0 || r.deadline < hard) {
		hard = r.deadline
	}
	r.reading.begin(l.limits.IdleRead, hard, func() { r.cancel(http1.ErrTimeout) })
	w.Body.Attach(r, r.resp.ContentLength)
	return nil
}

var (
	errStatus  = errors.New("status that is none")
	errLength  = errors.New("more than one content-length, or one that is no number")
	errHopLine = errors.New("header line that belongs to a connection")
)

// wellFormed holds a head to what the transport does not ask of it: a status of three digits, one length that is a number, and no lines of a
// connection (RFC 9113 sections 8.1.1, 8.2.2 and 8.3.2).
func wellFormed(status string, h *core.Header) error {
	if len(status) < 4 || status[3] != ' ' || status[0] < '1' || status[0] > '5' {
		return errStatus
	}
	lengths := 0
	for _, f := range h.Fields() {
		switch {
		case f.Kind.Hop() && f.Kind != core.KindTrailer:
			return errHopLine
		case f.Kind == core.KindContentLength:
			if lengths++; lengths > 1 || !http1.IsLength(f.Value) {
				return errLength
			}
		}
	}
	return nil
}

// Read implements io.Reader: the answer's body. It returns io.EOF only after the last byte, with the trailers at hand.
func (r *round) Read(p []byte) (int, error) {
	r.reading.enter()
	n, err := r.resp.Body.Read(p)
	r.reading.leave()
	switch {
	case err == nil:
	case err == io.EOF:
		r.trailers()
	case errors.Is(context.Cause(r.ctx), http1.ErrTimeout):
		err = http1.ErrTimeout
	}
	return n, err
}

func (r *round) trailers() { fillHeader(&r.l.x.Response.Body.Trailer, r.resp.Trailer) }

// end lets go of everything: the transport touches nothing of the exchange afterwards.
func (r *round) end() {
	r.close()
	r.reading.end()
	r.body.stop()
	r.cancel(errEnded)
	if r.resp != nil {
		_ = r.resp.Body.Close()
	}
}
