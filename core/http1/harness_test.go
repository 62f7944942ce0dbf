package http1

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
)

// wire is a connection that gives what it was made of, in pieces of at most step bytes, and then ends.
type wire struct {
	net.Conn
	data []byte
	step int
	sent bytes.Buffer
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.data) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if w.step > 0 {
		n = min(n, w.step)
	}
	n = copy(p[:n], w.data)
	w.data = w.data[n:]
	return n, nil
}

func (w *wire) Write(p []byte) (int, error)      { return w.sent.Write(p) }
func (w *wire) Close() error                     { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func connOf(data string, step int) (*Conn, *wire) {
	w := &wire{data: []byte(data), step: step}
	return NewConn(w), w
}

var limits = HeadLimits{Head: 64 << 10, Line: 16 << 10}

// readRequest reads one request with its body off a connection.
func readRequest(c *Conn) (*core.Request, string, error) {
	r := new(core.Request)
	head, err := c.ReadRequestHead(limits)
	if err != nil {
		return r, "", err
	}
	f, err := ParseRequest(head, r)
	if err != nil {
		return r, "", err
	}
	var body BodyReader
	body.Start(c, f, &r.Body.Trailer)
	data, err := io.ReadAll(&body)
	return r, string(data), err
}

func status(err error) int {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Status
	}
	return 0
}

func wantStatus(t *testing.T, err error, want int) {
	t.Helper()
	if got := status(err); got != want {
		t.Errorf("got %v, want status %d", err, want)
	}
}
