package compress

import (
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/moongate/moongate/core"
)

// Encoder reads a body and gives it back encoded. Encoders are pooled.
type Encoder struct {
	src   *core.Body
	codec codec
	pool  *sync.Pool

	buf [pieceSize]byte // what is read of the source
	out []byte          // encoded; out[off:] has not been read yet
	off int
	err error // that of the source, given once out is empty
}

// codec is what the three libraries have in common.
type codec interface {
	io.Writer
	Flush() error
	Close() error
	Reset(io.Writer)
}

// pieceSize is how much of a body is encoded at a time.
const pieceSize = 16 << 10

// The levels and windows are those of servers that encode as they send. BenchmarkEncode on a shared machine: zstd 150 MB/s, gzip 70, br 30; a page
// of HTML becomes an eighth, an eighth, a ninth. An encoder at work has 1 to 2 MiB.
var encoders = map[string]*sync.Pool{
	Gzip: pool(func() codec {
		w, _ := gzip.NewWriterLevel(nil, 5)
		return w
	}),
	Brotli: pool(func() codec { return brotli.NewWriterOptions(nil, brotli.WriterOptions{Quality: 4, LGWin: 18}) }),
	Zstd: pool(func() codec {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(256<<10))
		return w
	}),
}

func pool(make func() codec) *sync.Pool {
	return &sync.Pool{New: func() any { return &Encoder{codec: make()} }}
}

func newEncoder(name string) *Encoder {
	p := encoders[name]
	e := p.Get().(*Encoder)
	e.pool = p
	e.codec.Reset((*sink)(e))
	return e
}

func (e *Encoder) over(src *core.Body) io.Reader {
	e.src = src
	return e
}

// End gives the encoder back. The body that it was put in front of must not be read any more.
func (e *Encoder) End() {
	e.codec.Reset(nil)
	if e.src, e.err, e.off = nil, nil, 0; cap(e.out) > 8*pieceSize {
		e.out = nil
	}
	e.out = e.out[:0]
	e.pool.Put(e)
}

// AtHand tells whether a Read would find something without waiting for the source.
func (e *Encoder) AtHand() bool { return e.off < len(e.out) || e.err != nil || e.src.AtHand() }

// Read waits for a first piece of the source, encodes what is there without waiting for more, and gives it out whole: whoever decodes
// it has all that the source has sent.
func (e *Encoder) Read(p []byte) (int, error) {
	for e.off == len(e.out) {
		if e.err != nil {
			return 0, e.err
		}
		e.out, e.off = e.out[:0], 0
		e.fill(len(p))
	}
	n := copy(p, e.out[e.off:])
	e.off += n
	return n, nil
}

// fill encodes until about size bytes have come out, the source pauses, or it ends.
func (e *Encoder) fill(size int) {
	for len(e.out) < size && e.err == nil {
		n, err := e.src.Read(e.buf[:])
		if n > 0 {
			if _, fault := e.codec.Write(e.buf[:n]); fault != nil {
				e.err = fault
				return
			}
		}
		switch {
		case err == io.EOF:
			if e.err = io.EOF; e.codec.Close() != nil {
				e.err = io.ErrUnexpectedEOF
			}
		case err != nil: // what has come so far, and then a cut
			_ = e.codec.Flush()
			e.err = err
		case !e.src.AtHand():
			if err := e.codec.Flush(); err != nil {
				e.err = err
			}
			return
		}
	}
}

// sink is where a codec writes.
type sink Encoder

func (s *sink) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}
