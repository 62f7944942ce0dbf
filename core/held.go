package core

// Releaser is something that an exchange holds: a slot of a limiter, say. Release is called once.
type Releaser interface{ Release() }

// Hold makes sure that r is released when the exchange ends, whatever way it ends.
func (x *Exchange) Hold(r Releaser) { x.held = append(x.held, r) }

// Held lists what the exchange holds, the latest last.
func (x *Exchange) Held() []Releaser { return x.held }

// Drop releases the i-th of Held now.
func (x *Exchange) Drop(i int) {
	r := x.held[i]
	x.held = append(x.held[:i], x.held[i+1:]...)
	r.Release()
}

// ReleaseAll releases what the exchange holds, the latest first. The gateway calls it when the answer has ended; Reset does too.
func (x *Exchange) ReleaseAll() {
	for i := len(x.held) - 1; i >= 0; i-- {
		r := x.held[i]
		x.held[i] = nil
		x.held = x.held[:i]
		r.Release()
	}
}
