package http1

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func TestWebSocketHandshakesAreAnsweredByTheirKey(t *testing.T) {
	const key = "dGhlIHNhbXBsZSBub25jZQ==" // RFC 6455 section 1.3
	if got := WebSocketAccept([]byte(key)); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Errorf("got %s", got)
	}
	for text, want := range map[string]bool{key: true, "": false, key[:23]: false, key + "=": false, "dGhlIHNhbXBsZSBub25jZQ=": false, "dGhlIHNhbXBsZSBub25jZR==": false,
		"dGhlIHNhbXBsZSBub25jZQ\n=": false, "AAAAAAAAAAAAAAAAAAAAAAAA": false} {
		if ValidWebSocketKey([]byte(text)) != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
}

// wireFrame is a frame with a payload of so many bytes.
func wireFrame(op byte, size int, masked bool) []byte {
	out, mask := []byte{op}, byte(0)
	if masked {
		mask = 0x80
	}
	switch {
	case size < 126:
		out = append(out, mask|byte(size))
	case size < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, mask|126), uint16(size))
	default:
		out = binary.BigEndian.AppendUint64(append(out, mask|127), uint64(size))
	}
	if masked {
		out = append(out, 1, 2, 3, 4)
	}
	return append(out, make([]byte, size)...)
}

func TestFramesAreFollowedHoweverTheyArrive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		var stream []byte
		ends := map[int]bool{0: true}
		for range 1 + r.IntN(8) {
			size := []int{0, 1, 125, 126, 200, 65535, 65536, 70000}[r.IntN(8)]
			stream = append(stream, wireFrame(byte(r.IntN(8)), size, r.IntN(2) == 0)...)
			ends[len(stream)] = true
		}
		closes := len(stream)
		stream = append(stream, wireFrame(0x88, 2, false)...)
		ends[len(stream)] = true
		var f frames
		for at := 0; at < len(stream); {
			if f.whole() != ends[at] || f.closed != (at >= closes+2) {
				t.Fatalf("round %d: at %d of %d whole is %v, closed %v", round, at, len(stream), f.whole(), f.closed)
			}
			n := min(1+r.IntN(40000), len(stream)-at)
			if r.IntN(3) == 0 {
				n = min(1+r.IntN(15), len(stream)-at)
			}
			rest := f
			f.follow(stream[at : at+n])
			if k := rest.rest(stream[at : at+n]); !ends[at] && k != n && !ends[at+k] || ends[at] && k != 0 {
				t.Fatalf("round %d: at %d the rest of the frame is %d bytes", round, at, k)
			}
			at += n
		}
		if !f.whole() || !f.closed {
			t.Fatalf("round %d: not at the end", round)
		}
	}
}

func TestACloseFrameIsWhatItsReceiverExpects(t *testing.T) {
	if got := appendClose(nil, goingAway, false); !bytes.Equal(got, []byte{0x88, 2, 3, 233}) {
		t.Errorf("to a client: %x", got)
	}
	got := appendClose(nil, goingAway, true)
	if len(got) != 8 || got[0] != 0x88 || got[1] != 0x82 || got[6]^got[2] != 3 || got[7]^got[3] != 233 {
		t.Errorf("to an upstream: %x", got)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x81\x05hello\x88\x02\x03\xe9"), uint8(3))
	f.Add([]byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, at uint8) {
		var whole, pieces frames
		whole.follow(stream)
		cut := min(int(at), len(stream))
		pieces.follow(stream[:cut])
		pieces.follow(stream[cut:])
		if whole.have != pieces.have || whole.left != pieces.left || whole.closed != pieces.closed {
			t.Errorf("cut at %d: %+v, %+v", cut, whole, pieces)
		}
	})
}
