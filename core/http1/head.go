package http1

import (
	"bytes"
	"encoding/binary"
	"runtime"

	"github.com/moongate/moongate/core"
)

// HeadLimits bound the heads that a connection accepts, in bytes.
type HeadLimits struct {
	Head int // request line or status line and all fields
	Line int // request line
}

// Fit tells what a connection with these limits says of a whole head, the empty line at its end included: nil, or the *core.Error that answers it.
func (l HeadLimits) Fit(head []byte) error {
	if err := headFits(head, l.Head, l.Line); err != nil {
		return err
	}
	if bytes.Count(head, []byte("\r\n")) > MaxFields+2 { // with the lines at both ends
		return ErrTooManyFields
	}
	return nil
}

// MaxFields bounds the lines of one head, so that looking a name up stays cheap whatever a peer sends.
const MaxFields = 500

// ReadRequestHead reads until a whole request head is buffered and returns it without the empty line at its end. The bytes stay valid until
// Release. io.EOF means that the peer closed before the first byte.
func (c *Conn) ReadRequestHead(l HeadLimits) ([]byte, error) {
	return c.readHead(l.Head, l.Line, true)
}

// ReadResponseHead is ReadRequestHead for the answers of upstreams.
func (c *Conn) ReadResponseHead(limit int) ([]byte, error) {
	if c.r == c.w {
		yield()
	}
	return c.readHead(limit, limit, false)
}

// Await waits for the first byte of the next message.
func (c *Conn) Await() error {
	if c.r < c.w {
		return nil
	}
	yield()
	return c.fill()
}

// yield lets others run before a read whose bytes cannot be there yet: the peer has just been sent what it will answer. A busy process finds
// them there afterwards, and saves a read that says "try again", the parking, and the waking: 4.2 system calls a request instead of 6. An
// idle one comes back at once.
func yield() { runtime.Gosched() }

// AwaitResting is Await for a connection that has given its buffers back: it waits without holding one.
func (c *Conn) AwaitResting() error {
	n, err := c.read(c.one[:])
	if n == 0 {
		return err
	}
	c.in = takeSmall()
	c.in[0], c.w = c.one[0], 1
	return nil
}

func (c *Conn) readHead(limit, lineLimit int, request bool) ([]byte, error) {
	scanned := 0
	for {
		if request && c.skipEmptyLines() {
			scanned = 0
		}
		b := c.in[c.r:c.w]
		if end, err := findHead(b, scanned); err != nil {
			return nil, err
		} else if end >= 0 {
			if err := headFits(b[:end], limit, lineLimit); err != nil {
				return nil, err
			}
			c.r += end
			c.pin = c.r
			return b[:end-2], nil
		}
		if err := headFits(b, limit, lineLimit); err != nil {
			return nil, err
		}
		scanned = max(0, len(b)-3)
		started := len(b) > 0
		if err := c.fill(); err != nil {
			if started {
				return nil, cutError(err)
			}
			return nil, err
		}
	}
}

// skipEmptyLines passes over CRLF in front of a request line (RFC 9112 section 2.2) and tells whether there was one.
func (c *Conn) skipEmptyLines() (skipped bool) {
	for c.w-c.r >= 2 && c.in[c.r] == '\r' && c.in[c.r+1] == '\n' {
		c.r += 2
		skipped = true
	}
	return skipped
}

// findHead looks for the empty line that ends a head and returns the offset behind it, -1 while there is none. A line that ends in a bare
// LF is an error at once.
func findHead(b []byte, scanned int) (int, error) {
	for i := scanned; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return -1, nil
		}
		i += n
		if i == 0 || b[i-1] != '\r' {
			return 0, errBareLF
		}
		if i >= 3 && b[i-2] == '\n' {
			return i + 1, nil
		}
		if i == 1 {
			return 0, errEmptyHead
		}
	}
	return -1, nil
}

func headFits(b []byte, limit, lineLimit int) error {
	if len(b) <= lineLimit {
		return nil
	}
	if line := bytes.IndexByte(b, '\n'); line < 0 || line > lineLimit+1 {
		return errLineTooLong
	}
	if len(b) > limit {
		return errHeadTooLarge
	}
	return nil
}

// nextLine takes a line that ends in CRLF; findHead has seen that all do.
func nextLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	return b[:i-1], b[i+1:]
}

// framing is what the fields of a head say about the body and the connection.
type framing struct {
	length           int64 // of Content-Length, -1 when there is none
	chunked          bool
	hosts            int
	types            int
	close, keepAlive bool
	unknownCoding    bool
	upgrade          bool
	options          int // names in Connection lines
}

// parseFields reads the field lines of a head (RFC 9112 section 5) into h and what they say about framing into f.
func parseFields(b []byte, h *core.Header, f *framing) error {
	f.length = -1
	for n := 0; len(b) > 0; n++ {
		if n == MaxFields {
			return ErrTooManyFields
		}
		var line []byte
		line, b = nextLine(b)
		name, value, err := splitField(line)
		if err != nil {
			return err
		}
		kind := core.KindOf(name)
		if kind != core.KindOther {
			if err := f.note(kind, value); err != nil {
				return err
			}
		}
		h.Append(name, value, kind)
	}
	return nil
}

func splitField(line []byte) (name, value []byte, err error) {
	i := 0
	for i < len(line) && core.IsTokenByte(line[i]) {
		i++
	}
	switch {
	case i == len(line):
		return nil, nil, errNoColon
	case line[i] == ':' && i > 0:
	case i == 0 && (line[0] == ' ' || line[0] == '\t'):
		return nil, nil, errFold
	default:
		return nil, nil, errFieldName
	}
	value = core.Trim(line[i+1:])
	if !cleanValue(value) {
		return nil, nil, errFieldValue
	}
	return line[:i], value, nil
}

// cleanValue is core.IsValue, eight bytes at a time: a byte below 0x20 or 0x7f sets its block aside for a closer look. The last block may
// overlap the one before.
func cleanValue(b []byte) bool {
	if len(b) < 8 {
		return core.IsValue(b)
	}
	for rest := b; ; rest = rest[8:] {
		if len(rest) < 8 {
			rest = b[len(b)-8:]
		}
		if suspicious(binary.LittleEndian.Uint64(rest)) && !core.IsValue(rest[:8]) {
			return false
		}
		if len(rest) == 8 {
			return true
		}
	}
}

func suspicious(v uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	del := v ^ 0x7f*ones
	return ((v-0x20*ones)&^v|(del-ones)&^del)&high != 0
}

func (f *framing) note(kind core.Kind, value []byte) error {
	switch kind {
	case core.KindContentLength:
		n, ok := parseLength(value)
		if !ok || f.length >= 0 {
			return errContentLength
		}
		f.length = n
	case core.KindTransferEncoding:
		if f.chunked || f.unknownCoding {
			return errTransferEncoding
		}
		f.chunked = core.EqualFoldString(value, "chunked")
		f.unknownCoding = !f.chunked
	case core.KindConnection:
		return f.noteConnection(value)
	case core.KindHost:
		f.hosts++
	case core.KindContentType:
		f.types++
	}
	return nil
}

// maxOptions bounds the names in Connection lines, each of which costs a walk over all fields.
const maxOptions = 100

func (f *framing) noteConnection(value []byte) error {
	for item, rest := core.NextItem(value); item != nil; item, rest = core.NextItem(rest) {
		if f.options++; f.options > maxOptions {
			return errTooManyOptions
		}
		switch {
		case core.EqualFoldString(item, "close"):
			f.close = true
		case core.EqualFoldString(item, "keep-alive"):
			f.keepAlive = true
		case core.EqualFoldString(item, "upgrade"):
			f.upgrade = true
		}
	}
	return nil
}

// parseLength reads 1*DIGIT that fits int64 (RFC 9110 section 8.6).
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
