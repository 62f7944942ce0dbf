package server

import "encoding/binary"

// Settings of RFC 9113 section 6.5.2 whose values have bounds.
const (
	settingEnablePush    = 2
	settingInitialWindow = 4
	settingMaxFrame      = 5

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
