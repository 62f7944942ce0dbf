//go:build !amd64 && !arm64

package limit

func prefetch(*slot) {}
