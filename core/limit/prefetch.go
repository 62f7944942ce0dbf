//go:build amd64 || arm64

package limit

// prefetch has the processor fetch a slot's cache line, and does not wait for it.
//
//go:noescape
func prefetch(s *slot)
