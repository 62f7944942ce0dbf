package server

import (
	"errors"
	"net"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// Continue sends 100 when the client waits for it. From then on the gateway has answered the expectation itself.
func (c *client) Continue() error {
	if !c.x.Request.Expect || c.continued || c.x.Response.Started {
		return nil
	}
	c.continued, c.x.Request.Expect = true, false
	return c.conn.Flush(append(c.conn.Begin(), "HTTP/1.1 100 Continue\r\n\r\n"...))
}

// bodyWanted is called before the first byte of a body is read that the client holds back. Unless the upstream was asked, the gateway
// itself wants it.
func (c *client) bodyWanted() error {
	if c.x.Request.ExpectPassed {
		return nil
	}
	return c.Continue()
}

// Inform sends an interim answer to clients of HTTP/1.1; older ones know none.
func (c *client) Inform(status int, header *core.Header) error {
	if c.x.Request.Proto == core.HTTP10 || c.x.Response.Started {
		return nil
	}
	out := http1.AppendStatusLine(c.conn.Begin(), status, nil)
	for _, f := range header.Fields() {
		if !f.Kind.Hop() && f.Kind != core.KindContentLength {
			out = http1.AppendField(out, f.Name, f.Value)
		}
	}
	return c.conn.Flush(append(out, "\r\n"...))
}

// StopBody ends a pending read of the request's body, which is then of no use any more.
func (c *client) StopBody() {
	c.close = true
	c.conn.Interrupt()
}

// ResumeBody takes StopBody back. The connection closes after the answer all the same.
func (c *client) ResumeBody() bool {
	c.conn.Resume()
	return c.body.Resume()
}

// Ease asks no pace of the rest of the request's body any more.
func (c *client) Ease() { c.conn.EaseReads() }

// Respond writes the answer. The connection closes afterwards when its body could not be brought to its end, when the request's body
// is unlikely to be read, or when the client asked for it.
func (c *client) Respond() error {
	x := c.x
	w := &x.Response
	bodyless := x.Request.Method == "HEAD" || !core.BodyAllowed(w.Status)
	chunked := !bodyless && w.Body.Length() < 0 && x.Request.Proto == core.HTTP11
	untilClose := !bodyless && w.Body.Length() < 0 && !chunked
	c.close = c.close || untilClose || c.bodyInTheWay() || c.srv.draining.Load() || c.by.closes()
	out := c.appendHead(c.conn.Begin(), bodyless, chunked)
	w.Started = true
	var err error
	if bodyless {
		err = c.conn.Flush(out)
	} else {
		w.BodySent, err = http1.SendBody(c.conn, out, &w.Body, chunked)
	}
	if err != nil {
		c.broken, c.close = true, true
		if _, cut := errors.AsType[*http1.ReadError](err); cut && untilClose {
			c.reset()
		}
	}
	return err
}

// underway is how long an answer waits for the rest of a short body that nobody has read: most are about to come to their end. A client that still
// sends by then is told that the connection closes (RFC 9112 section 9.6), and need not find out with its next request.
const underway = 100 * time.Millisecond

// bodyInTheWay tells whether what is left of the request's body makes the connection useless.
func (c *client) bodyInTheWay() bool {
	q := &c.x.Request
	switch {
	case q.Expect:
		return true
	case q.Uploading && !q.Body.Changed():
		return c.uploadEnds()
	case q.Uploading || c.body.Source() == nil || c.body.Ended():
		return false
	}
	return c.body.Broken() || c.body.Left() > drainLimit || !c.drain(underway)
}

// uploadEnds tells whether a body that is on its way to the upstream will be ended, since its answer is a refusal, or all there. Any other may be
// one half of a conversation.
func (c *client) uploadEnds() bool {
	w := &c.x.Response
	_, whole := w.Body.Whole()
	return (w.Status >= 400 || whole || w.Body.AtHandWhole()) && !c.allRead.Load()
}

// reset makes the end of the connection an abnormal one, for bodies that have no other way to show that they were cut.
func (c *client) reset() {
	if tcp, ok := plain(c.conn.NetConn()).(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

func (c *client) appendHead(out []byte, bodyless, chunked bool) []byte {
	x := c.x
	w := &x.Response
	out = http1.AppendStatusLine(out, w.Status, w.Reason)
	dated := false // an answer without a date gets one (RFC 9110 section 6.6.1)
	for _, f := range w.Header.Fields() {
		switch {
		case f.Kind == core.KindOther:
		case f.Kind == core.KindUpgrade && w.Status == 426: // RFC 9110 section 15.5.22 wants it there
			out = append(out, "Connection: Upgrade\r\n"...)
		case f.Kind.Hop():
			continue
		case f.Kind == core.KindContentLength:
			if !bodyless || w.Status < 200 || w.Status == 204 || w.Body.Changed() {
				continue
			}
		case f.Kind == core.KindDate:
			dated = true
		}
		out = http1.AppendField(out, f.Name, f.Value)
	}
	if !dated {
		out = http1.AppendDate(out)
	}
	switch {
	case chunked:
		out = http1.AppendChunked(out)
	case !bodyless && w.Body.Length() >= 0, core.BodyAllowed(w.Status) && w.Body.Changed(): // HEAD is told what GET would be
		out = http1.AppendLength(out, w.Body.Length())
	}
	switch {
	case c.close:
		out = append(out, "Connection: close\r\n"...)
	case x.Request.Proto == core.HTTP10:
		out = append(out, "Connection: keep-alive\r\n"...)
	}
	return append(out, "\r\n"...)
}
