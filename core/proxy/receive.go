package proxy

import (
	"errors"
	"fmt"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/upstream"
)

// receive reads heads until the final one. Interim answers go to the client as they come.
func (l *Leg) receive() error {
	w := &l.x.Response
	for {
		head, err := l.readHead()
		if err != nil {
			return err
		}
		if l.framing, err = http1.ParseResponse(head, l.x.Request.Method, w); err != nil {
			w.Status = 0
			if fault, ok := errors.AsType[*core.Error](err); ok {
				err = headFault(fault)
			}
			return &malformed{err}
		}
		if w.Status == 101 {
			if err := l.accept(); err != nil {
				w.Status = 0
				return &malformed{err}
			}
			break
		}
		if w.Status >= 200 {
			break
		}
		if err := l.interim(); err != nil {
			return err
		}
	}
	l.x.Times.FirstByte = core.Now()
	if l.x.Times.Sent == 0 {
		l.x.Times.Sent = l.x.Times.FirstByte
	}
	if l.upload.active() {
		l.client.Ease()
	}
	l.judge(w.Status)
	l.open()
	return nil
}

// readHead waits for a head within the limits. While the request's body is on its way the clock of the answer stands still.
func (l *Leg) readHead() ([]byte, error) {
	for {
		now := core.Now()
		active := l.upload.active()
		left := l.headTime(now)
		if active {
			left = l.limits.FirstByte
		} else if sent := core.Instant(l.upload.sent.Load()); sent != 0 {
			left = min(l.limits.FirstByte, l.limits.Total) - now.Sub(sent)
		}
		if l.retrying { // nothing of the body is waited for
			left = min(left, l.hard.Sub(now))
		}
		if left <= 0 {
			return nil, http1.ErrTimeout
		}
		l.conn.ReadWithin(now, left)
		head, err := l.conn.ReadResponseHead(maxHead)
		if errors.Is(err, http1.ErrTimeout) && l.upload.done != nil {
			continue // the loop's arithmetic decides whether the time is over
		}
		if fault, ok := errors.AsType[*core.Error](err); ok {
			return nil, &malformed{headFault(fault)}
		}
		return head, err
	}
}

// headFault words what is wrong with a head; the status that it carries is for clients.
func headFault(fault *core.Error) error {
	switch {
	case fault == http1.ErrTooManyFields:
		return errManyFields
	case fault.Status == 431, fault.Status == 414:
		return errLargeHead
	}
	return errors.New(fault.Public)
}

var (
	errLargeHead  = fmt.Errorf("head larger than %d KiB, the limit", maxHead>>10)
	errInterims   = fmt.Errorf("more than %d interim answers, the limit", maxInterims)
	errManyFields = fmt.Errorf("head of more than %d fields, the limit", http1.MaxFields)
)

// maxInterims bounds the answers of 1xx before the one that counts.
const maxInterims = 1000

func (l *Leg) interim() error {
	w := &l.x.Response
	if l.interims++; l.interims > maxInterims {
		w.Status = 0
		return &malformed{errInterims}
	}
	var err error
	switch w.Status {
	case 100:
		err = l.client.Continue()
	default:
		dropNominated(&w.Header)
		err = l.client.Inform(w.Status, &w.Header)
	}
	w.Header.Reset()
	w.Status = 0
	l.conn.Release()
	if err != nil {
		return fmt.Errorf("%w: %w", upstream.ErrClientGone, err)
	}
	return nil
}

// open joins the answer's body to the exchange.
func (l *Leg) open() {
	x := l.x
	dropNominated(&x.Response.Header)
	l.mapLocation()
	hard := core.Instant(0)
	if l.limits.BodyTotal > 0 {
		hard = x.Times.FirstByte.Add(l.limits.BodyTotal)
	}
	l.conn.ReadIdle(l.limits.IdleRead, hard)
	l.conn.Body.Start(l.conn.Conn, l.framing, &x.Response.Body.Trailer)
	x.Response.Body.Attach(l.conn.Body.Source(), l.framing.Length)
}

// dropNominated removes the lines that Connection names as belonging to one connection only (RFC 9110 section 7.6.1).
func dropNominated(h *core.Header) {
	if h.GetKind(core.KindConnection) != nil {
		h.DropNominated()
	}
}

// mapLocation turns a Location that names the endpoint into one that leads back through the gateway.
func (l *Leg) mapLocation() {
	h := &l.x.Response.Header
	at := h.GetKind(core.KindLocation)
	if at == nil {
		return
	}
	r, e := &l.x.Request, l.attempt.Endpoint
	own := e.Scheme + "://" + e.Authority
	if len(at) < len(own) || !core.EqualFoldString(at[:len(own)], own) || len(r.Host) == 0 {
		return
	}
	rest := at[len(own):]
	if len(rest) > 0 && rest[0] != '/' && rest[0] != '?' && rest[0] != '#' {
		return
	}
	h.Set("Location", r.Scheme+"://"+string(r.Host)+string(l.stripped())+string(rest))
}
