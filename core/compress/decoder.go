package compress

import (
	"bufio"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/moongate/moongate/core"
)

// ErrCoding ends the reading of a body that is not encoded as it says.
var ErrCoding = errors.New("not encoded as Content-Encoding says")

// decoders open the content codings of RFC 9110 section 8.4.1, RFC 7932 and RFC 8878 by name.
var decoders = map[string]func(*bufio.Reader) (io.Reader, error){
	Gzip:      func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"x-gzip":  func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"deflate": inflate,
	Brotli:    func(r *bufio.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
	Zstd: func(r *bufio.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	},
}

// maxWindow is the largest window that a sender of zstd may ask for (RFC 9659).
const maxWindow = 8 << 20

// inflate reads deflate with the frame of zlib, as the RFC has it, and without, as some servers send it.
func inflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// Decode takes a content coding off a body: whoever reads it sees the text as it streams. It tells false, and does nothing, when the
// coding is not known. The header is the caller's. A body that is not what its coding says ends with ErrCoding.
func Decode(b *core.Body, coding []byte) bool {
	lower := make([]byte, 0, 16)
	for _, c := range coding {
		if 'A' <= c && c <= 'Z' {
			c += 0x20
		}
		lower = append(lower, c)
	}
	open := decoders[string(lower)]
	if open == nil {
		return false
	}
	most := b.Max // holds for the text too: a little that is encoded may be very much
	b.Wrap(func(src *core.Body) io.Reader { return &decoder{src: src, open: open} })
	b.Max = most
	return true
}

// decoder is a body without its coding. It reads of its source no more than it must to give out what has come.
type decoder struct {
	src  *core.Body
	open func(*bufio.Reader) (io.Reader, error)
	in   *bufio.Reader
	out  io.Reader // nil before the first byte
	err  error     // sticky
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.out == nil && !d.begin() {
		return 0, d.err
	}
	n, err := d.out.Read(p)
	if err != nil {
		d.end(err)
	}
	return n, d.err
}

// begin opens the coding. A body without a byte is empty, whatever it says.
func (d *decoder) begin() bool {
	d.in = bufio.NewReader(d.src)
	if _, err := d.in.Peek(1); err != nil {
		d.err = err
		return false
	}
	out, err := d.open(d.in)
	if err != nil {
		d.end(err)
		return false
	}
	d.out = out
	return true
}

// end settles why no more comes: the source's own error goes before what a library makes of it. What follows the end of the coding is
// read, so that the source comes to its end too; there must be nothing.
func (d *decoder) end(err error) {
	if err == io.EOF {
		if _, err = d.in.ReadByte(); err == io.EOF {
			d.err = io.EOF
			return
		}
	}
	if d.err = d.src.Err(); d.err == nil || d.err == io.EOF {
		d.err = ErrCoding
	}
}
