package core

import "io"

// bodyCopy gathers a body while somebody else reads it.
type bodyCopy struct {
	limit int64
	data  []byte
	done  func(data []byte, whole bool)
}

// Copy has the body copied as it is read: nobody waits for the copy, and nothing is read for its sake. done is called once, by whoever reads
// the last byte: with the whole body; or with nil and false as soon as it is longer than limit or broken off, at the latest at Reset. Nothing
// of the body may have been consumed. It holds for one copy at a time.
func (b *Body) Copy(limit int64, done func(data []byte, whole bool)) {
	c := &bodyCopy{limit: limit, done: done}
	if b.Length() > limit {
		done(nil, false)
		return
	}
	b.copy = c
	b.copied(b.buf)
	if b.copy == c && (b.whole || b.src == nil) {
		b.endCopy(true)
	}
}

// copied notes bytes that came from the source.
func (b *Body) copied(p []byte) {
	c := b.copy
	if int64(len(c.data)+len(p)) > c.limit {
		b.endCopy(false)
		return
	}
	c.data = append(c.data, p...)
}

func (b *Body) endCopy(whole bool) {
	c := b.copy
	b.copy = nil
	if !whole {
		c.data = nil
	}
	c.done(c.data, whole)
}

// readSource reads from the source and lets the copy have what came.
func (b *Body) readSource(p []byte) (int, error) {
	n, err := b.src.Read(p)
	if b.copy != nil {
		if b.copied(p[:n]); b.copy != nil && (err != nil || int64(len(b.copy.data)) == b.length) { // who knows the length asks for no end
			b.endCopy(err == nil || err == io.EOF)
		}
	}
	return n, err
}
