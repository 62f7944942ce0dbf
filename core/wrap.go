package core

import "io"

// Wrap puts a reader in front of the body, whose length is unknown from then on. over gets the body as it was, trailers excepted: they stay
// with b. Nothing of b may have been read.
func (b *Body) Wrap(over func(*Body) io.Reader) {
	inner := *b
	inner.Trailer = Header{}
	*b = Body{Trailer: b.Trailer, Max: b.Max}
	b.Attach(over(&inner), -1)
}
