package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// fail turns a breakage into the answer of the exchange: status and public text for the client, the cause for the log. It is the only place
// that does.
func (g *Gateway) fail(x *core.Exchange, err error) {
	status, public, told := 500, "internal error", false
	if e, ok := errors.AsType[*core.Error](err); ok {
		status, public = e.Status, e.Public
		told = e.Cause == nil // a client's own fault: the access line says it all
	}
	x.Response.Header.Reset()
	if a, ok := errors.AsType[*core.Answered](err); ok {
		if err = apply(x, a.Reply); err == nil {
			return
		}
		status, public, told = 500, "internal error", false
	}
	x.Err = err
	answer(x, core.FromGateway, status, public)
	if status == 408 {
		g.cuts.tooSlow(err)
	}
	if status >= 500 && !told {
		g.failing.note(g.opts.Log, x, err)
	}
}

// answer fills the response with the standard error JSON, one line.
func answer(x *core.Exchange, source core.Source, status int, message string) {
	w := &x.Response
	w.Status, w.Reason, w.Source, w.Message = status, nil, source, message
	w.Header.Set("Content-Type", "application/json")
	body := make([]byte, 0, 128)
	body = append(body, `{"code":`...)
	body = strconv.AppendInt(body, int64(status), 10)
	body = append(body, `,"message":`...)
	body = appendJSON(body, core.Bytes(message))
	body = append(body, `,"request_id":"`...)
	body = append(body, x.RequestID...)
	w.Body.Replace(append(body, "\"}\n"...))
}

// apply fills the response with a filter's reply. One that is no answer is an error: it must not open the way to the upstream.
func apply(x *core.Exchange, r *core.Reply) error {
	if r.Status < 200 || r.Status > 599 {
		return fmt.Errorf("a filter answered with status %d", r.Status)
	}
	w := &x.Response
	w.Header.CopyFrom(&r.Header)
	if r.IsError {
		answer(x, r.Source, r.Status, r.Message)
		return nil
	}
	w.Status, w.Source = r.Status, r.Source
	w.Body.Replace(r.Body)
	return nil
}

func readFailed(err error) bool {
	_, ok := errors.AsType[*http1.ReadError](err)
	return ok
}

// failLog writes the causes of failed exchanges, so many a second and no more: an upstream that is down must not fill a disk.
type failLog struct {
	mu      sync.Mutex
	second  int64
	lines   int
	dropped int
}

// failLines is how many lines a second are written.
const failLines = 50

// may tells whether there is room for one more line.
func (f *failLog) may(log *slog.Logger) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now().Unix()
	if now != f.second {
		if f.dropped > 0 {
			log.Warn("more requests failed", "lines_dropped", f.dropped)
		}
		f.second, f.lines, f.dropped = now, 0, 0
	}
	if f.lines++; f.lines > failLines {
		f.dropped++
		return false
	}
	return true
}

func (f *failLog) note(log *slog.Logger, x *core.Exchange, err error) {
	if !f.may(log) {
		return
	}
	attrs := []any{"request_id", string(x.RequestID), "trace_id", string(x.TraceID), "method", x.Request.Method, "path", string(x.Request.Path)}
	if x.Route != nil {
		attrs = append(attrs, "route", x.Route.Name)
	}
	if x.Upstream != "" {
		attrs = append(attrs, "upstream", x.Upstream)
	}
	log.Error("request failed", append(attrs, "status", x.Response.Status, "error", err.Error())...)
}
