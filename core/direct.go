package core

import "io"

// Direct is the body's source when a reader would get its bytes and nothing else from here on, so that they may be moved without being
// read; nil otherwise. What is taken from it directly is noted with Count.
func (b *Body) Direct() io.Reader {
	if b.off < len(b.buf) || b.whole || b.err != nil || b.copy != nil {
		return nil
	}
	return b.src
}
