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

// ResumeBody tells that it cannot: the standard library ends a body for good.
func (c *stream) ResumeBody() bool { return false }

// Ease asks no pace of the rest of the request's body any more.
func (c *stream) Ease() { c.stall.eased.Store(true) }

// Respond writes the answer. A body that was cut resets the stream when the exchange has ended.
func (c *stream) Respond() error {
	w := &c.x.Response
	if c.conn.by.closes() {
		c.conn.leaves.Store(true)
		c.w.Header()["Connection"] = []string{"close"} // which the standard library takes as a wish for GOAWAY
	}
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
		if http1.TrailerAllowed(f.Name) {
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
	if ok && len(whole) <= c.conn.window() {
		c.limitRest() // the last of it is written after the handler
		return c.write(whole)
	}
	defer c.limitRest()
	if ok {
		return c.writePieces(whole)
	}
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
			if err := c.writePieces(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			_ = c.flush()                               // the client learns what there was
			if slow := c.conn.out.slow(); slow != nil { // whose connection it was ends the upstream's part, too
				return slow
			}
			return &http1.ReadError{Err: err}
		}
	}
}

// limitRest bounds what the standard library writes of the stream after the handler.
func (c *stream) limitRest() {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.stall.pace.Idle))
}

// unflushed is the size from which the standard library sends a piece at once.
const unflushed = 4 << 10

// writePieces writes b. Once more has been written than a client's window takes at first, what a write can move depends on how much the client
// opens it, and nobody tells how far a write has come; so the pieces are small then, and grow as long as the client takes them soon.
func (c *stream) writePieces(b []byte) error {
	for len(b) > 0 {
		if left := int64(c.conn.window()) - c.x.Response.BodySent; left >= int64(len(b)) {
			return c.write(b)
		} else if left > 0 {
			if err := c.write(b[:left]); err != nil {
				return err
			}
			b = b[left:]
			continue
		}
		if c.piece == 0 {
			c.piece = c.leastPiece()
		}
		n := min(c.piece, len(b))
		began := core.Now()
		err := c.write(b[:n])
		if err == nil && n == c.piece && n < unflushed {
			err = c.flush()
		}
		if err != nil {
			return err
		}
		if core.Now().Sub(began) > c.stall.slice() {
			c.piece = c.leastPiece()
		} else {
			c.piece = min(2*c.piece, mostPiece)
		}
		b = b[n:]
	}
	return nil
}

// mostPiece is the size of the pieces of a body whose client keeps up.
const mostPiece = 64 << 10

// leastPiece is what a client that holds its pace takes in half of the time that it may be late by.
func (c *stream) leastPiece() int {
	p := c.stall.pace
	if p.Rate == 0 {
		return mostPiece
	}
	return int(min(max(float64(p.Rate)*p.Grace.Seconds()/2, 64), mostPiece))
}

func (c *stream) write(b []byte) error {
	o := &c.stall.writing
	began := c.watch(o)
	n, err := c.w.Write(b)
	o.done(began, n)
	c.x.Response.BodySent += int64(n)
	if err != nil {
		return c.why(o, err)
	}
	return nil
}

func (c *stream) flush() error {
	o := &c.stall.writing
	began := c.watch(o)
	err := c.control.Flush()
	o.done(began, 0)
	if err != nil {
		return c.why(o, err)
	}
	return nil
}
