package server

import (
	"encoding/binary"
	"sync/atomic"
)

// replies watches the frames that go out to a client, for what they tell of it: which streams it had us reset (CVE-2025-8671), and how much it has
// been sent, for which it opens windows. Whoever writes calls see; the guard of the same connection takes the counts.
type replies struct {
	head [9]byte // of the frame under way
	have int     // bytes of head
	left int     // bytes of its payload
	code uint32  // of a reset, as far as it has passed

	caused  atomic.Int64 // streams reset because of what the client did
	refused atomic.Int64 // streams refused, since as many are open as may be
	sent    atomic.Int64 // frames with some of a body
	moved   atomic.Int64 // window updates that what has been sent deserves
}

// Codes of RFC 9113 section 7 that say that the client has broken the protocol, and the one of a refused stream.
const (
	codeProtocol     = 1
	codeFlowControl  = 3
	codeStreamClosed = 5
	codeFrameSize    = 6
	codeRefused      = 7
	codeCompression  = 9
	codeCalm         = 11
)

// windowsAFrame is how often a client may open windows for a frame of a body that it has been sent, and windowsAByte for each byte of it.
const (
	windowsAFrame = 16
	windowsAByte  = 2
)

// see takes the next bytes of the connection.
func (r *replies) see(b []byte) {
	for len(b) > 0 {
		if r.have < len(r.head) {
			n := copy(r.head[r.have:], b)
			r.have += n
			if b = b[n:]; r.have < len(r.head) {
				return
			}
			r.left = int(r.head[0])<<16 | int(r.head[1])<<8 | int(r.head[2])
			if r.head[3] == frameData && r.left > 0 {
				r.sent.Add(1)
				r.moved.Add(int64(windowsAFrame + windowsAByte*r.left))
			}
		}
		n := min(r.left, len(b))
		if r.head[3] == frameReset {
			r.read(b[:n])
		}
		r.left -= n
		if b = b[n:]; r.left == 0 {
			r.have = 0
		}
	}
}

// read takes bytes of a reset's code.
func (r *replies) read(b []byte) {
	if len(b) == 4 {
		r.code = binary.BigEndian.Uint32(b)
	} else {
		for _, c := range b {
			r.code = r.code<<8 | uint32(c)
		}
	}
	if len(b) < r.left {
		return
	}
	switch r.code {
	case codeProtocol, codeFlowControl, codeStreamClosed, codeFrameSize, codeCompression, codeCalm:
		r.caused.Add(1)
	case codeRefused:
		r.refused.Add(1)
	}
}
