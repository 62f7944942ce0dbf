package server

import (
	"encoding/binary"

	"github.com/moongate/moongate/core/xconnect"
)

// The standard library allows extended CONNECT on every connection; withoutConnect takes it back where it is not wanted. By now it has read the
// variable that asks it to.
var _ = xconnect.Settle()

// withoutConnect takes the setting that allows extended CONNECT out of the SETTINGS frame that a connection begins with, p being the
// first piece that is written.
func withoutConnect(p []byte) []byte {
	const head = 9
	if len(p) < head || p[3] != frameSettings {
		return p
	}
	size := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	for at := head; at+6 <= len(p) && at+6 <= head+size; at += 6 {
		if binary.BigEndian.Uint16(p[at:]) == settingConnect {
			out := append(append(make([]byte, 0, len(p)), p[:at]...), p[at+6:]...)
			size -= 6
			out[0], out[1], out[2] = byte(size>>16), byte(size>>8), byte(size)
			return out
		}
	}
	return p
}

// Settings of RFC 9113 section 6.5.2 whose values have bounds.
const (
	settingEnablePush    = 2
	settingInitialWindow = 4
	settingMaxFrame      = 5
	settingConnect       = 8 // ENABLE_CONNECT_PROTOCOL, RFC 8441 section 3

	unknownSetting = 0xf000 // and above: nobody's, and so ignored
	mostSettings   = 100
)

// settleSettings takes settings out of a SETTINGS frame that a later one of the same frame changes again: they are to be processed in
// order (RFC 9113 section 6.5.3), which the standard library takes for an error. A value that is one stays where it is.
func settleSettings(payload []byte) {
	n := len(payload) / 6
	if n > mostSettings || len(payload)%6 != 0 {
		return
	}
	for i := range n {
		entry := payload[6*i:]
		id := binary.BigEndian.Uint16(entry)
		if !settingValid(id, binary.BigEndian.Uint32(entry[2:])) {
			continue
		}
		for j := i + 1; j < n; j++ {
			if binary.BigEndian.Uint16(payload[6*j:]) == id {
				binary.BigEndian.PutUint16(entry, unknownSetting+uint16(i))
				break
			}
		}
	}
}

// initialWindow finds the size that new streams are to have, by the last entry of a SETTINGS frame that says one.
func initialWindow(payload []byte) (size uint32, ok bool) {
	for ; len(payload) >= 6; payload = payload[6:] {
		if binary.BigEndian.Uint16(payload) == settingInitialWindow {
			size, ok = binary.BigEndian.Uint32(payload[2:]), true
		}
	}
	return size, ok
}

func settingValid(id uint16, v uint32) bool {
	switch id {
	case settingEnablePush:
		return v <= 1
	case settingInitialWindow:
		return v < 1<<31
	case settingMaxFrame:
		return v >= 1<<14 && v < 1<<24
	}
	return true
}
