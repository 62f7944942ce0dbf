package http1

import "sync"

// bufferSize is what a connection reads and writes with unless a head needs more.
const bufferSize = 4 << 10

// streamSize is the piece in which long bodies are moved.
const streamSize = 64 << 10

var (
	smallBuffers  = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	streamBuffers = sync.Pool{New: func() any { return new([streamSize]byte) }}
)

func takeSmall() []byte { return smallBuffers.Get().(*[bufferSize]byte)[:] }

// giveSmall takes back a buffer of any size and keeps it when it is one of the pool's.
func giveSmall(b []byte) {
	if cap(b) == bufferSize {
		smallBuffers.Put((*[bufferSize]byte)(b[:bufferSize]))
	}
}

// TakeStream lends a buffer for moving a long body; GiveStream takes it back.
func TakeStream() []byte { return streamBuffers.Get().(*[streamSize]byte)[:] }

// GiveStream takes back what TakeStream lent.
func GiveStream(b []byte) { streamBuffers.Put((*[streamSize]byte)(b[:streamSize])) }
