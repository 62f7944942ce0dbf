package core

import "io"

// Wrap puts a reader in front of the body, whose length is unknown from then on. over gets the body as it was, trailers excepted: they stay
// with b. Nothing of b may have been read.
func (b *Body) Wrap(over func(*Body) io.Reader) { b.put(over, -1) }

// Watch is Wrap for a reader that gives the very same bytes, or an error: the length stays what it was.
func (b *Body) Watch(over func(*Body) io.Reader) { b.put(over, b.Length()) }

func (b *Body) put(over func(*Body) io.Reader, length int64) {
	inner := new(Body)
	*inner = *b
	inner.Trailer = Header{}
	*b = Body{Trailer: b.Trailer, Forbidden: b.Forbidden, under: inner}
	b.Attach(over(inner), length)
}

// AsRead is the body as those who needed it whole have read it, whatever it passes on its way out; false when nobody has.
func (b *Body) AsRead() ([]byte, bool) {
	for b.under != nil {
		b = b.under
	}
	return b.Whole()
}

// Err is what reading the body ended with: nil before that, io.EOF at its end.
func (b *Body) Err() error { return b.err }
