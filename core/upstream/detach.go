package upstream

// Detach takes a connection that has switched protocols out of the pool, whose room is free again. Whoever uses the connection
// closes it.
func (p *Pool) Detach(*Conn) { p.free(nil) }
