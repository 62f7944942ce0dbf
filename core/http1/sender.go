package http1

import (
	"io"

	"github.com/moongate/moongate/core"
)

// ReadError is a failure of the side that a body came from.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return "reading body: " + e.Err.Error() }
func (e *ReadError) Unwrap() error { return e.Err }

// smallBody is what is copied behind a head to save a system call.
const smallBody = 8 << 10

// SendBody writes what stands in head, then the whole of body, in as few writes as the data allows: one when the body is small and at
// hand. Data that arrives in pieces goes out piece by piece, at once; a head whose body has not begun to arrive goes out alone. head
// lies in c's write buffer or nowhere. The number of body bytes written comes back, and an error of reading as *ReadError, so that the
// two ends can be told apart.
func SendBody(c *Conn, head []byte, body *core.Body, chunked bool) (int64, error) {
	if whole, ok := body.Whole(); ok && len(whole) <= smallBody {
		return int64(len(whole)), sendSmall(c, head, whole, body, chunked)
	}
	if len(head) > 0 && (len(head) > streamSize/2 || !body.AtHand()) {
		if err := c.Flush(head); err != nil {
			return 0, err
		}
		head = nil
	}
	if !chunked {
		if s, source := spliceable(c, body); s != nil {
			return s.splice(head, source, body)
		}
	}
	buf := TakeStream()
	defer GiveStream(buf)
	return stream(c, buf, head, body, chunked)
}

func sendSmall(c *Conn, out, whole []byte, body *core.Body, chunked bool) error {
	if chunked {
		out = AppendChunk(out, whole)
		out = AppendLastChunk(out, &body.Trailer)
	} else {
		out = append(out, whole...)
	}
	if len(out) == 0 {
		return nil
	}
	return c.Flush(out)
}

// chunkHead leaves room for a chunk's size line in front of data that is read into place, chunkEnd for what follows it.
const (
	chunkHead = 8
	chunkEnd  = 2
)

func stream(c *Conn, buf, head []byte, body *core.Body, chunked bool) (sent int64, err error) {
	for ended := false; !ended; head = nil {
		at := len(head) + chunkHead
		n, err := body.Read(buf[at : len(buf)-chunkEnd])
		if ended = err == io.EOF; err != nil && !ended {
			if len(head) > 0 {
				_, _ = c.Write(head) // the peer learns what there was
			}
			return sent, &ReadError{err}
		}
		out := assemble(buf, head, at, n, chunked)
		if ended && chunked {
			out = AppendLastChunk(out, &body.Trailer)
		}
		if len(out) == 0 {
			continue
		}
		if _, err := c.Write(out); err != nil {
			return sent, err
		}
		sent += int64(n)
	}
	return sent, nil
}

// assemble puts head and, for chunks, the size line in front of the n bytes at buf[at:] and returns the whole.
func assemble(buf, head []byte, at, n int, chunked bool) []byte {
	start := at
	if chunked && n > 0 {
		start -= 2
		buf[at-2], buf[at-1] = '\r', '\n'
		for v := n; v > 0; v >>= 4 {
			start--
			buf[start] = "0123456789abcdef"[v&15]
		}
	}
	start -= len(head)
	copy(buf[start:], head)
	out := buf[start : at+n]
	if chunked && n > 0 {
		out = append(out, "\r\n"...)
	}
	return out
}
