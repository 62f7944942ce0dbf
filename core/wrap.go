package core

import "io"

// Wrap puts a reader in front of the body, whose length is unknown from then on. over gets the body as it was, trailers excepted: they stay
// with b. Nothing of b may have been read.
func (b *Body) Wrap(over func(*Body) io.Reader) {
	inner := new(Body)
	*inner = *b
	inner.Trailer = Header{}
	*b = Body{Trailer: b.Trailer, Forbidden: b.Forbidden, under: inner}
	b.Attach(over(inner), -1)
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
