package server

import (
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// Continue does nothing: HTTP/2 sends 100 of itself when the body of a client that waits for it is first read.
func (c *stream) Continue() error { return nil }

// Inform sends an interim answer.
func (c *stream) Inform(status int, header *core.Header) error {
	if c.x.Response.Started {
		return nil
	}
	h := c.w.Header()
	for _, f := range header.Fields() {
		if !f.Kind.Hop() && f.Kind != core.KindContentLength {
			c.lines.add(&f)
		}
	}
	c.lines.fill(h)
	c.w.WriteHeader(status)
	clear(h)
	return nil
}

// StopBody ends a pending read of the request's body, which is then of no use any more.
func (c *stream) StopBody() { _ = c.control.SetReadDeadline(time.Unix(1, 0)) }

// Respond writes the answer. A body that was cut resets the stream when the exchange has ended.
func (c *stream) Respond() error {
	w := &c.x.Response
	if asksCode(c.x) {
		c.grpcHead()
		return nil
	}
	bodyless := c.x.Request.Method == "HEAD" || !core.BodyAllowed(w.Status)
	c.fillHead(bodyless)
	w.Started = true
	c.w.WriteHeader(w.Status)
	if bodyless || w.Body.None() {
		return nil
	}
	err := c.sendBody()
	if err != nil {
		c.broken = true
		return err
	}
	h := c.w.Header()
	for _, f := range w.Body.Trailer.Fields() {
		if http1.TrailerAllowed(f.Kind) {
			name := http.TrailerPrefix + textproto.CanonicalMIMEHeaderKey(string(f.Name))
			h[name] = append(h[name], string(f.Value))
		}
	}
	return nil
}

// fillHead sets the lines of the head. A nil list keeps the standard library from inventing one.
func (c *stream) fillHead(bodyless bool) {
	w := &c.x.Response
	h := c.w.Header()
	counted := false
	for _, f := range w.Header.Fields() {
		switch {
		case f.Kind == core.KindOther:
		case f.Kind.Hop():
			continue
		case f.Kind == core.KindContentLength:
			counted = true
			if !bodyless || w.Status < 200 || w.Status == 204 {
				continue
			}
		}
		c.lines.add(&f)
	}
	c.lines.fill(h)
	length := w.Body.Length()
	switch {
	case bodyless:
	case length >= 0 && (counted || !w.Body.None() && w.Source != core.FromUpstream || w.Body.Changed()):
		h["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	default:
		h["Content-Length"] = nil
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil
	}
	if w.Source == core.FromUpstream && h["Date"] == nil {
		h["Date"] = nil
	}
}

// atOnce is the size up to which a body that is at hand goes out in one piece with its head.
const atOnce = 32 << 10

// sendBody writes the body and flushes whenever more has yet to come.
func (c *stream) sendBody() error {
	w := &c.x.Response
	body := &w.Body
	whole, ok := body.Whole()
	if !ok && body.AtHandWhole() && body.Length() <= atOnce {
		if b, err := body.Buffer(atOnce); err == nil {
			whole, ok = b, true
		}
	}
	if ok {
		_ = c.control.SetWriteDeadline(time.Now().Add(c.stall.span)) // the last of it is written after the handler
		return c.write(whole)
	}
	defer func() { _ = c.control.SetWriteDeadline(time.Now().Add(c.stall.span)) }()
	buf := http1.TakeStream()
	defer http1.GiveStream(buf)
	for {
		if !body.AtHand() {
			if err := c.flush(); err != nil {
				return err
			}
		}
		n, err := body.Read(buf)
		if n > 0 {
			if err := c.write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			_ = c.flush() // the client learns what there was
			return &http1.ReadError{Err: err}
		}
	}
}

func (c *stream) write(b []byte) error {
	c.watch(&c.stall.writing)
	n, err := c.w.Write(b)
	c.stall.writing.Store(0)
	c.x.Response.BodySent += int64(n)
	return err
}

func (c *stream) flush() error {
	c.watch(&c.stall.writing)
	err := c.control.Flush()
	c.stall.writing.Store(0)
	return err
}
