package proxy

import (
	"net/netip"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/route"
)

// send writes the request. A body that is at hand goes out with the head; one that is still coming is sent by another goroutine while this
// one waits for the answer.
func (l *Leg) send() error {
	x := l.x
	body := &x.Request.Body
	l.conn.WriteIdle(l.limits.IdleRead)
	content, whole := body.Whole()
	if !whole && body.AtHandWhole() {
		var err error
		content, err = body.Buffer(body.Length())
		whole = err == nil
	}
	body.Rewind()
	if whole {
		x.Request.Expect = false
	}
	head := l.appendHead(l.conn.Begin())
	if whole && len(content) <= inlineBody {
		_, err := http1.SendBody(l.conn.Conn, head, body, body.Length() < 0)
		x.Times.Sent = core.Now()
		return err
	}
	l.upload.start(l, head)
	return nil
}

// inlineBody is the size up to which a body that is in memory is written before the answer is waited for. More could fill the buffers
// between here and an endpoint that answers without reading.
const inlineBody = 32 << 10

func (l *Leg) appendHead(out []byte) []byte {
	x := l.x
	r := &x.Request
	out = append(out, r.Method...)
	out = append(out, ' ')
	out = l.appendTarget(out)
	out = append(out, " HTTP/1.1\r\nHost: "...)
	switch host := l.up.Host(); {
	case host == "upstream", host == "client" && len(r.Host) == 0: // HTTP/1.0 may have none
		out = append(out, l.attempt.Endpoint.Authority...)
	case host == "client":
		out = append(out, r.Host...)
	default:
		out = append(out, host...)
	}
	out = append(out, "\r\n"...)
	trailers := false
	for _, f := range r.Header.Fields() {
		if f.Kind != core.KindOther {
			switch f.Kind {
			case core.KindHost, core.KindContentLength, core.KindExpect, core.KindTraceID:
				continue
			case core.KindForwardedFor, core.KindForwardedProto, core.KindForwardedHost, core.KindForwardedPrefix:
				if !r.Own {
					continue
				}
			case core.KindTE:
				trailers = trailers || core.HasItem(f.Value, "trailers")
			}
			if f.Kind.Hop() {
				continue
			}
		}
		out = http1.AppendField(out, f.Name, f.Value)
	}
	if !r.Own {
		out = l.appendForwarded(out)
	}
	if len(x.TraceID) > 0 {
		out = http1.AppendField(out, core.Bytes("X-Trace-Id"), x.TraceID)
	}
	switch {
	case r.Upgrade:
		out = append(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	case trailers:
		out = append(out, "TE: trailers\r\nConnection: TE\r\n"...)
	}
	return append(l.appendFraming(out), "\r\n"...)
}

func (l *Leg) appendTarget(out []byte) []byte {
	r := &l.x.Request
	path := r.TargetPath
	if path == nil {
		path = route.Target(l.x.Route, r.RawPath, r.Path, l.target[:0])
	}
	out = append(out, path...)
	query, has := r.RawQuery, r.HasQuery
	if r.QuerySet {
		query, has = r.TargetQuery, len(r.TargetQuery) > 0
	}
	if has {
		out = append(out, '?')
		out = append(out, query...)
	}
	return out
}

// appendForwarded says where the request came from. What a trusted proxy said stands, and its own address is added; what anybody else said
// was taken away when the request arrived.
func (l *Leg) appendForwarded(out []byte) []byte {
	r := &l.x.Request
	out = append(out, "X-Forwarded-For: "...)
	for _, f := range r.Header.Fields() {
		if f.Kind == core.KindForwardedFor {
			out = append(append(out, f.Value...), ", "...)
		}
	}
	out = appendAddr(out, r.RemoteAddr.Addr())
	out = append(out, "\r\n"...)
	out = orField(out, &r.Header, core.KindForwardedProto, "X-Forwarded-Proto", core.Bytes(r.Scheme))
	out = orField(out, &r.Header, core.KindForwardedHost, "X-Forwarded-Host", r.Host)
	if prefix := l.stripped(); len(prefix) > 0 {
		out = http1.AppendField(out, core.Bytes("X-Forwarded-Prefix"), prefix)
	} else if f := r.Header.GetKind(core.KindForwardedPrefix); f != nil {
		out = http1.AppendField(out, core.Bytes("X-Forwarded-Prefix"), f)
	}
	switch r.Proto {
	case core.HTTP10:
		return append(out, "Via: 1.0 moongate\r\n"...)
	case core.HTTP2:
		return append(out, "Via: 2.0 moongate\r\n"...)
	}
	return append(out, "Via: 1.1 moongate\r\n"...)
}

func appendAddr(out []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return append(out, "unknown"...)
	}
	return a.AppendTo(out)
}

func orField(out []byte, h *core.Header, kind core.Kind, name string, value []byte) []byte {
	if said := h.GetKind(kind); said != nil {
		value = said
	}
	if len(value) == 0 {
		return out
	}
	return http1.AppendField(out, core.Bytes(name), value)
}

// stripped is the part of the raw path that the route takes away, nil when there is none or the path was set by a filter.
func (l *Leg) stripped() []byte {
	r, rt := &l.x.Request, l.x.Route
	if rt.StripSegments == 0 && rt.StripPrefix == "" || r.TargetPath != nil {
		return nil
	}
	plain := *rt
	plain.Rewrite = nil
	rest := route.Target(&plain, r.RawPath, r.Path, nil)
	n := len(r.RawPath) - len(rest)
	if len(rest) == 1 && n > 0 && r.RawPath[len(r.RawPath)-1] != '/' {
		n++
	}
	if n <= 0 || n > len(r.RawPath) {
		return nil
	}
	return r.RawPath[:n]
}

func (l *Leg) appendFraming(out []byte) []byte {
	r := &l.x.Request
	switch length := r.Body.Length(); {
	case length < 0:
		out = http1.AppendChunked(out)
	case length > 0 || r.Header.GetKind(core.KindContentLength) != nil || r.Body.Changed():
		out = http1.AppendLength(out, length)
	}
	if r.Expect {
		out = append(out, "Expect: 100-continue\r\n"...)
	}
	return out
}
