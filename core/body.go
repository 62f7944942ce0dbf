package core

import (
	"errors"
	"io"
)

// ErrBodyTooLarge ends the reading of a body that is longer than its limit allows.
var ErrBodyTooLarge = errors.New("body too large")

// Body is the content of a message. It streams from its source unless somebody needs it whole: then Buffer holds it in memory and
// every reader, the upstream included, sees the same bytes. The zero value is an empty body.
type Body struct {
	// Max is the largest number of bytes that may be read from the source; 0 means no limit.
	Max int64
	// Trailer holds the trailer fields once the source has ended, but for those whose names Forbidden, unless nil, refuses.
	Trailer   Header
	Forbidden func(name []byte) bool

	under   *Body // what Wrap put a reader in front of
	src     io.Reader
	length  int64  // announced length of the source, -1 unknown
	taken   int64  // bytes read from the source
	buf     []byte // read ahead of whoever consumes
	off     int    // consumed part of buf
	keep    int64  // most bytes that stay in buf when they have been consumed; 0: none do
	whole   bool   // buf[0:] is the whole body, src has ended
	changed bool   // buf was set by a script
	err     error  // sticky error of the source
	copy    *bodyCopy
}

// Attach gives the body its source and the length that was announced, -1 when it is unknown. A nil source is an empty body.
func (b *Body) Attach(src io.Reader, length int64) {
	b.src, b.length = src, length
	b.whole = src == nil
}

// Reset makes the body empty and lets go of its source.
func (b *Body) Reset() {
	if b.copy != nil {
		b.endCopy(false)
	}
	b.Trailer.Reset()
	buf := b.buf
	if b.changed || cap(buf) > 64<<10 {
		buf = nil
	}
	*b = Body{Trailer: b.Trailer, buf: buf[:0], whole: true}
}

// None tells whether there is no content and never was: no length, no framing.
func (b *Body) None() bool { return b.src == nil && !b.changed && len(b.buf) == 0 }

// Length is the number of bytes that a reader from the start will see, -1 when it is not known before the end, or not to be told, since
// trailers follow the bytes.
func (b *Body) Length() int64 {
	switch {
	case b.whole && b.src != nil && !b.changed && b.Trailer.Len() > 0:
		return -1
	case b.whole:
		return int64(len(b.buf))
	case b.src == nil:
		return 0
	}
	return b.length
}

// Taken is the number of bytes read so far from where they came first.
func (b *Body) Taken() int64 {
	for b.under != nil {
		b = b.under
	}
	return b.taken
}

// Changed tells whether Replace was called.
func (b *Body) Changed() bool { return b.changed }

// Whole returns the body when all of it is in memory.
func (b *Body) Whole() ([]byte, bool) {
	if b.whole {
		return b.buf, true
	}
	return nil, b.src == nil
}

// Buffer brings the body into memory and returns it. When it is longer than limit, the error is ErrBodyTooLarge and what was read
// stays for whoever reads next: the body can still go on whole. The slice is the body's own and read-only.
func (b *Body) Buffer(limit int64) ([]byte, error) {
	if b.length > limit && !b.whole {
		return nil, ErrBodyTooLarge
	}
	for !b.whole && b.src != nil && b.err == nil {
		if int64(len(b.buf)) > limit {
			return nil, ErrBodyTooLarge
		}
		b.fill(limit)
	}
	switch {
	case !b.whole && b.src != nil:
		return nil, b.err
	case int64(len(b.buf)) > limit:
		return nil, ErrBodyTooLarge
	}
	return b.buf, nil
}

// Replace sets the body to data, which the caller no longer changes. What the source still holds is not read.
func (b *Body) Replace(data []byte) {
	b.buf, b.off, b.whole, b.changed, b.err, b.under = data, 0, true, true, nil, nil
	b.length = int64(len(data))
}

// Keep has the bytes that are read from now on stay, as long as they are not more than limit: so far Rewind can start from the beginning again.
// It does nothing for a body of which a part is gone, or which is announced to be longer.
func (b *Body) Keep(limit int64) {
	if b.off == 0 && b.err == nil && b.length <= limit && int64(len(b.buf)) <= limit {
		b.keep = limit
	}
}

// Forget ends what Keep began: what has been read is gone. It is for whoever reads the body.
func (b *Body) Forget() {
	if b.keep == 0 {
		return
	}
	if b.keep = 0; b.off == len(b.buf) && !b.whole {
		if b.buf, b.off = b.buf[:0], 0; cap(b.buf) > smallBuffer { // the rest may take hours
			b.buf = nil
		}
	}
}

// smallBuffer is how much room a body that streams may hold on to.
const smallBuffer = 4 << 10

// retain keeps what was read from the source.
func (b *Body) retain(p []byte) {
	switch {
	case b.keep == 0:
	case int64(len(b.buf)+len(p)) > b.keep:
		b.Forget()
	default:
		b.buf = append(b.buf, p...)
		b.off = len(b.buf)
	}
}

// Rewind lets the next reader of a body that is whole, of which all that was read was kept, or that nobody has touched, start from the beginning.
// It tells whether that is possible.
func (b *Body) Rewind() bool {
	kept := b.keep > 0 && (b.err == nil || b.err == io.EOF)
	if !b.whole && !kept && (b.taken > 0 || b.off > 0 || b.err != nil) {
		return false
	}
	b.off = 0
	return true
}

// Resume forgets the error of a source that can be read again, when nothing has been read from it yet.
func (b *Body) Resume() {
	if b.taken == 0 {
		b.err = nil
	}
}

// AtHand tells whether a Read would find something, or the end, without waiting for a peer. A source says so by a method of that name.
func (b *Body) AtHand() bool {
	if b.off < len(b.buf) || b.whole || b.src == nil || b.err != nil {
		return true
	}
	src, ok := b.src.(interface{ AtHand() bool })
	return ok && src.AtHand()
}

// AtHandWhole tells whether all that is left of a body of known length could be read without waiting for the peer.
func (b *Body) AtHandWhole() bool {
	src, ok := b.src.(interface{ AtHandWhole() bool })
	return ok && b.err == nil && src.AtHandWhole()
}

// Read gives the bytes in order: first those read ahead, then the source's. It returns io.EOF only after the last byte.
func (b *Body) Read(p []byte) (int, error) {
	if b.off < len(b.buf) {
		n := copy(p, b.buf[b.off:])
		b.off += n
		return n, nil
	}
	if b.whole || b.src == nil {
		return 0, io.EOF
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.readSource(p)
	b.retain(p[:n])
	return n, b.count(n, err)
}

func (b *Body) fill(limit int64) {
	if len(b.buf) == cap(b.buf) {
		size := max(4096, 2*cap(b.buf))
		if b.length > 0 && b.length <= limit {
			size = int(b.length) + 1
		}
		grown := make([]byte, len(b.buf), size)
		copy(grown, b.buf)
		b.buf = grown
	}
	n, err := b.readSource(b.buf[len(b.buf):cap(b.buf)])
	b.buf = b.buf[:len(b.buf)+n]
	if err = b.count(n, err); err == io.EOF {
		b.whole, b.err = true, nil
	}
}

func (b *Body) count(n int, err error) error {
	b.taken += int64(n)
	if b.Max > 0 && b.taken > b.Max {
		err = ErrBodyTooLarge
	}
	if err == io.EOF && b.Forbidden != nil {
		b.Trailer.DelFunc(func(f *Field) bool { return b.Forbidden(f.Name) })
	}
	b.err = err
	return err
}
