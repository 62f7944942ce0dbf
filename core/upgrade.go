package core

// Count notes n bytes that came from the sender of the body by another way than Read, such as over a connection that has switched
// protocols.
func (b *Body) Count(n int64) { b.taken += n }
