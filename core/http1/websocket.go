package http1

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 4.2.2 asks for it; nothing is kept secret by it
	"encoding/base64"
	"encoding/binary"
	mathrand "math/rand/v2"
)

// ValidWebSocketKey tells whether key is what a client sends to open a WebSocket: 16 bytes in base64 (RFC 6455 section 4.1).
func ValidWebSocketKey(key []byte) bool {
	if len(key) != 24 {
		return false
	}
	var raw [18]byte
	n, err := base64.StdEncoding.Strict().Decode(raw[:], key)
	return err == nil && n == 16
}

// NewWebSocketKey makes the key of a handshake: 16 random bytes in base64.
func NewWebSocketKey() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.StdEncoding.EncodeToString(raw[:])
}

// WebSocketAccept is the Sec-WebSocket-Accept that answers key (RFC 6455 section 4.2.2).
func WebSocketAccept(key []byte) string {
	h := sha1.New() //nolint:gosec // see above
	h.Write(key)
	h.Write([]byte("258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// frames follows a stream of WebSocket frames (RFC 6455 section 5.2) by their heads alone, to know where one ends and whether a Close has
// passed. What it cannot understand it takes as frames all the same: the two ends judge each other, not we.
type frames struct {
	head   [14]byte
	have   int    // bytes of head that were seen
	left   uint64 // bytes of the current frame's payload that are still to come
	closed bool   // a Close frame has begun
}

const opClose = 0x8

// whole tells whether the stream stands between two frames.
func (f *frames) whole() bool { return f.have == 0 && f.left == 0 }

// follow notes that b has passed.
func (f *frames) follow(b []byte) {
	for len(b) > 0 {
		b = b[f.step(b):]
	}
}

// rest is how many bytes at the front of b belong to the frame that has begun; it notes that those have passed.
func (f *frames) rest(b []byte) int {
	n := 0
	for n < len(b) && !f.whole() {
		n += f.step(b[n:])
	}
	return n
}

// step notes the front of b, at most to the end of the frame, and returns how much it took: at least one byte.
func (f *frames) step(b []byte) int {
	if f.left > 0 {
		n := min(uint64(len(b)), f.left)
		f.left -= n
		return int(n)
	}
	n := 0
	for n < len(b) {
		f.head[f.have] = b[n]
		f.have++
		n++
		if f.have >= 2 && f.have == f.headSize() {
			f.begin()
			break
		}
	}
	return n
}

// headSize is the size of the head of which at least two bytes are there.
func (f *frames) headSize() int {
	size := 2
	switch f.head[1] & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if f.head[1]&0x80 != 0 {
		size += 4
	}
	return size
}

func (f *frames) begin() {
	f.have = 0
	f.closed = f.closed || f.head[0]&0x0f == opClose
	switch n := f.head[1] & 0x7f; n {
	case 126:
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(n)
	}
}

// goingAway is the status of a Close frame whose sender goes away (RFC 6455 section 7.4.1).
const goingAway = 1001

// appendClose appends a Close frame with that status. Clients mask what they send, so what goes to an upstream is masked.
func appendClose(dst []byte, status uint16, masked bool) []byte {
	payload := binary.BigEndian.AppendUint16(nil, status)
	if !masked {
		return append(dst, 0x80|opClose, 2, payload[0], payload[1])
	}
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], mathrand.Uint32())
	dst = append(dst, 0x80|opClose, 0x80|2)
	dst = append(dst, key[:]...)
	return append(dst, payload[0]^key[0], payload[1]^key[1])
}
