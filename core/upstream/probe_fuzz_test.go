package upstream

import (
	"encoding/binary"
	"testing"
)

// FuzzGRPCStatus holds what is read of a message against the plainest messages there are.
func FuzzGRPCStatus(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02\x08\x01"))
	f.Add([]byte("\x00\x00\x00\x00\x06\x12\x02ab\x08\x01"))
	f.Add([]byte("\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		status, err := grpcStatus(frame)
		if err != nil && status != 0 {
			t.Fatalf("status %d and an error", status)
		}
		if err != nil {
			return
		}
		more := append(append([]byte{}, frame...), grpcFieldOne) // the last value of a field counts
		more = binary.AppendUvarint(more, 7)
		binary.BigEndian.PutUint32(more[1:], uint32(len(more)-grpcFrame))
		if last, err := grpcStatus(more); last != 7 || err != nil {
			t.Fatalf("with another status behind it: %d, %v", last, err)
		}
	})
}
