package h2test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
)

// Stream is one request and its answer, and a WebSocket's connection after a switch: it is a net.Conn. Bytes that nobody reads hold the server
// back. One goroutine may read while another writes.
type Stream struct {
	c  *Conn
	id uint32

	// guarded by Conn.mu
	status   int
	header   http.Header
	window   int64 // that the server lets be sent
	in       []byte
	ended    bool        // the server has ended its half
	reset    *ResetError // or the whole stream
	deadline time.Time   // of reads
}

// ResetError is the end of a stream that the server has reset.
type ResetError struct{ Code http2.ErrCode }

func (e *ResetError) Error() string { return fmt.Sprintf("stream reset: %v", e.Code) }

func (s *Stream) answered(f *http2.MetaHeadersFrame) {
	s.ended = s.ended || f.StreamEnded()
	if n := statusOf(f); n >= 200 && s.status == 0 {
		s.status, s.header = n, http.Header{}
		for _, line := range f.RegularFields() {
			s.header.Add(line.Name, line.Value)
		}
	}
}

// Wait waits for the head of the answer.
func (s *Stream) Wait() error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for s.status == 0 {
		switch {
		case s.reset != nil:
			return s.reset
		case c.err != nil:
			return c.err
		}
		c.changed.Wait()
	}
	return nil
}

// Status is the answer's, 0 before Wait.
func (s *Stream) Status() int {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.status
}

// Header is the answer's, after Wait.
func (s *Stream) Header() http.Header { return s.header }

// Read gives io.EOF where the server has ended the stream, and a *ResetError where it has reset it and none of what came before is left.
func (s *Stream) Read(p []byte) (int, error) {
	c := s.c
	c.mu.Lock()
	for len(s.in) == 0 {
		err := c.err
		switch {
		case s.ended:
			err = io.EOF
		case s.reset != nil:
			err = s.reset
		case err == nil && !s.deadline.IsZero() && !time.Now().Before(s.deadline):
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			c.mu.Unlock()
			return 0, err
		}
		c.changed.Wait()
	}
	n := copy(p, s.in)
	if s.in = s.in[n:]; len(s.in) == 0 {
		s.in = nil
	}
	open := !s.ended && s.reset == nil
	c.mu.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	if n > 0 {
		_ = c.framer.WriteWindowUpdate(0, uint32(n))
		if open {
			_ = c.framer.WriteWindowUpdate(s.id, uint32(n))
		}
	}
	return n, nil
}

// Write sends p in frames as large as the server's windows let it.
func (s *Stream) Write(p []byte) (sent int, err error) {
	for sent < len(p) {
		n, err := s.room(min(len(p)-sent, 16<<10))
		if err != nil {
			return sent, err
		}
		s.c.writing.Lock()
		err = s.c.framer.WriteData(s.id, false, p[sent:sent+n])
		s.c.writing.Unlock()
		if err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// room waits until something may be sent, and takes up to most of it.
func (s *Stream) room(most int) (int, error) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case s.reset != nil:
			return 0, s.reset
		case c.err != nil:
			return 0, c.err
		}
		if n := min(int64(most), s.window, c.window); n > 0 {
			s.window -= n
			c.window -= n
			return int(n), nil
		}
		c.changed.Wait()
	}
}

// CloseWrite ends the client's half.
func (s *Stream) CloseWrite() error {
	s.c.writing.Lock()
	defer s.c.writing.Unlock()
	return s.c.framer.WriteData(s.id, true, nil)
}

// Close resets the stream, as a client does that has lost interest. The connection stays.
func (s *Stream) Close() error { return s.Reset(http2.ErrCodeCancel) }

// Reset resets the stream.
func (s *Stream) Reset(code http2.ErrCode) error {
	s.c.mu.Lock()
	if s.reset == nil {
		s.reset = &ResetError{code}
	}
	s.c.changed.Broadcast()
	s.c.mu.Unlock()
	s.c.writing.Lock()
	defer s.c.writing.Unlock()
	return s.c.framer.WriteRSTStream(s.id, code)
}

// LocalAddr is the connection's.
func (s *Stream) LocalAddr() net.Addr { return s.c.nc.LocalAddr() }

// RemoteAddr is the connection's.
func (s *Stream) RemoteAddr() net.Addr { return s.c.nc.RemoteAddr() }

// SetReadDeadline ends reads at t.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.c.mu.Lock()
	s.deadline = t
	s.c.mu.Unlock()
	if wake := s.c.changed.Broadcast; !t.IsZero() {
		time.AfterFunc(time.Until(t), wake)
	}
	return nil
}

// SetWriteDeadline does nothing.
func (s *Stream) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is SetReadDeadline.
func (s *Stream) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }
