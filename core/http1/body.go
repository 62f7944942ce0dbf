package http1

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"

	"github.com/moongate/moongate/core"
)

// BodyReader takes one message's body off its connection. It is reused for message after message.
type BodyReader struct {
	// OnRead, when set, is called before the first byte is asked for.
	OnRead func() error
	// AllRead, when set, becomes true before whoever reads the last byte has it, for those who do not read themselves.
	AllRead *atomic.Bool

	conn    *Conn
	trailer *core.Header // where trailers go
	mode    bodyMode
	left    int64 // of the body, or of the current chunk
	inChunk bool
	err     error // sticky; io.EOF when the body has ended
}

type bodyMode uint8

const (
	bodyNone bodyMode = iota
	bodyLength
	bodyChunked
	bodyClose
)

// maxChunkLine bounds a chunk's size line with its extensions; maxTrailer bounds a trailer section.
const (
	maxChunkLine = 1 << 10
	maxTrailer   = 16 << 10
)

// Start begins a body framed as f says. Trailers are appended to trailer.
func (b *BodyReader) Start(c *Conn, f Framing, trailer *core.Header) {
	*b = BodyReader{conn: c, trailer: trailer, left: f.Length}
	switch {
	case f.Chunked:
		b.mode, b.left = bodyChunked, 0
	case f.Length < 0:
		b.mode = bodyClose
	case f.Length > 0:
		b.mode = bodyLength
	default:
		b.err = io.EOF
	}
}

// Source is b as the source of a core.Body: nil for a message without a body.
func (b *BodyReader) Source() io.Reader {
	if b.mode == bodyNone {
		return nil
	}
	return b
}

// Ended tells whether the whole body, trailers included, was taken off the connection.
func (b *BodyReader) Ended() bool { return b.err == io.EOF }

// Broken tells whether reading failed, so that nobody knows where the next message begins.
func (b *BodyReader) Broken() bool { return b.err != nil && b.err != io.EOF }

// Resume lets a body be read on whose reading ended with ErrTimeout, and tells whether it can be read.
func (b *BodyReader) Resume() bool {
	if errors.Is(b.err, ErrTimeout) {
		b.err = nil
	}
	return !b.Broken()
}

// Left is the number of body bytes that are still to come, -1 when that is not known.
func (b *BodyReader) Left() int64 {
	switch {
	case b.Ended():
		return 0
	case b.mode == bodyLength:
		return b.left
	}
	return -1
}

// AtHand tells whether a Read would find something without waiting for the peer.
func (b *BodyReader) AtHand() bool {
	switch {
	case b.err != nil:
		return true
	case b.mode == bodyChunked:
		return b.moreAtHand()
	}
	return b.conn.Buffered() > 0
}

// AtHandWhole tells whether all that is left of a body of known length has been received, and reading it surprises nobody.
func (b *BodyReader) AtHandWhole() bool {
	return b.OnRead == nil && b.mode == bodyLength && b.left <= int64(b.conn.Buffered())
}

// Read returns io.EOF only after the last byte was seen and, for chunks, the trailer section. A connection that ends early is ErrCut.
func (b *BodyReader) Read(p []byte) (int, error) {
	if b.OnRead != nil {
		f := b.OnRead
		b.OnRead = nil
		if err := f(); err != nil {
			b.err = err
		}
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.read(p)
	if err != nil {
		if b.err = err; err == io.EOF {
			b.tell()
		}
	}
	return n, err
}

func (b *BodyReader) tell() {
	if b.AllRead != nil {
		b.AllRead.Store(true)
	}
}

func (b *BodyReader) read(p []byte) (int, error) {
	switch b.mode {
	case bodyChunked:
		return b.readChunked(p)
	case bodyClose:
		return b.conn.readBody(p)
	}
	n, err := b.readLeft(p)
	if err == nil && b.left == 0 {
		err = io.EOF
	}
	return n, err
}

// readLeft reads at most what is left of the body or chunk.
func (b *BodyReader) readLeft(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.conn.readBody(p)
	b.left -= int64(n)
	return n, cutError(err)
}

// readChunked fills p from as many chunks as are at hand (RFC 9112 section 7.1); it waits only for the first byte.
func (b *BodyReader) readChunked(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		if done > 0 && !b.moreAtHand() {
			break
		}
		if b.left == 0 {
			if err := b.nextChunk(); err != nil {
				return done, err
			}
		}
		n, err := b.readLeft(p[done:])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// moreAtHand tells whether the next bytes of a chunked body, or its end, can be read without waiting.
func (b *BodyReader) moreAtHand() bool {
	buf := b.conn.in[b.conn.r:b.conn.w]
	if b.left > 0 {
		return len(buf) > 0
	}
	if b.inChunk {
		if len(buf) < 2 {
			return false
		}
		buf = buf[2:]
	}
	switch end := bytes.IndexByte(buf, '\n'); {
	case end < 0:
		return false
	case buf[0] != '0':
		return len(buf) > end+1
	default: // the last chunk, most likely: its trailers belong to it
		return bytes.HasPrefix(buf[end+1:], []byte("\r\n")) || bytes.Contains(buf[end+1:], []byte("\r\n\r\n"))
	}
}

// nextChunk reads up to the next chunk's first byte. The last chunk, with the trailers behind it, gives io.EOF.
func (b *BodyReader) nextChunk() error {
	if b.inChunk {
		if line, err := b.line(2, errChunk); err != nil {
			return err
		} else if len(line) > 0 {
			return errChunk
		}
		b.inChunk = false
	}
	line, err := b.line(maxChunkLine, errChunk)
	if err != nil {
		return err
	}
	size, ok := chunkSize(line)
	switch {
	case !ok:
		return errChunk
	case size == 0:
		return b.readTrailer()
	}
	b.left, b.inChunk = size, true
	return nil
}

// chunkSize reads 1*HEXDIG and checks the extensions behind it, which nobody needs.
func chunkSize(line []byte) (int64, bool) {
	var n int64
	i := 0
	for ; i < len(line) && hexDigit(line[i]); i++ {
		if i == 15 {
			return 0, false
		}
		c := line[i] | 0x20
		if c >= 'a' {
			c -= 'a' - 10
		} else {
			c -= '0'
		}
		n = n<<4 | int64(c&15)
	}
	return n, i > 0 && validExtensions(line[i:])
}

// validExtensions checks *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) of RFC 9112 section 7.1.1.
func validExtensions(b []byte) bool {
	for len(b) > 0 {
		if b = core.Trim(b); len(b) == 0 || b[0] != ';' {
			return false
		}
		var name []byte
		if name, b = cutToken(core.Trim(b[1:])); len(name) == 0 {
			return false
		}
		rest := core.Trim(b)
		if len(rest) == 0 || rest[0] != '=' {
			continue
		}
		if rest = core.Trim(rest[1:]); len(rest) > 0 && rest[0] == '"' {
			end := quotedEnd(rest)
			if end < 0 {
				return false
			}
			b = rest[end:]
			continue
		}
		if name, b = cutToken(rest); len(name) == 0 {
			return false
		}
	}
	return true
}

func cutToken(b []byte) (token, rest []byte) {
	i := 0
	for i < len(b) && core.IsTokenByte(b[i]) {
		i++
	}
	return b[:i], b[i:]
}

func quotedEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == '\\':
			i++
		case b[i] == '"':
			return i + 1
		case !core.IsValue(b[i : i+1]):
			return -1
		}
	}
	return -1
}

// readTrailer reads the trailer section and pins it, because its fields lie in the buffer.
func (b *BodyReader) readTrailer() error {
	if line, err := b.line(maxTrailer, errTrailer); err != nil {
		return err
	} else if len(line) == 0 {
		return io.EOF
	} else {
		b.conn.r -= len(line) + 2
	}
	c := b.conn
	for scanned := 0; ; {
		section := c.in[c.r:c.w]
		end, err := findHead(section, scanned)
		switch {
		case err != nil, end > maxTrailer, end < 0 && len(section) > maxTrailer:
			return errTrailer
		case end >= 0:
			var f framing
			if err := parseFields(section[:end-2], b.trailer, &f); err != nil {
				return errTrailer
			}
			c.r += end
			c.pin = c.r
			return io.EOF
		}
		scanned = max(0, len(section)-3)
		if err := c.fill(); err != nil {
			return cutError(err)
		}
	}
}

// line takes a line that ends in CRLF and is at most limit bytes long; anything else is bad.
func (b *BodyReader) line(limit int, bad error) ([]byte, error) {
	c := b.conn
	for {
		buf := c.in[c.r:c.w]
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			if i == 0 || buf[i-1] != '\r' || i > limit {
				return nil, bad
			}
			c.r += i + 1
			return buf[:i-1], nil
		}
		if len(buf) > limit {
			return nil, bad
		}
		if err := c.fill(); err != nil {
			return nil, cutError(err)
		}
	}
}
