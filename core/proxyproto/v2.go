package proxyproto

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/netip"
)

// The signature of version 2 and what follows it: version and command, family and transport, length (section 2.2).
const (
	signature = "\r\n\r\n\x00\r\nQUIT\n"
	headV2    = 16

	local, proxy = 0x20, 0x21 // version 2 with its command

	unspec    = 0x00
	tcp4      = 0x11
	tcp6      = 0x21
	unix      = 0x31
	size4     = 12
	size6     = 36
	sizeUnix  = 216
	checksum  = 0x03 // PP2_TYPE_CRC32C
	maxLength = 4 << 10
)

func readV2(r io.Reader) (Header, error) {
	var head [headV2]byte
	copy(head[:], signature)
	if _, err := io.ReadFull(r, head[first:]); err != nil {
		return Header{}, err
	}
	if head[12] != local && head[12] != proxy {
		return Header{}, ErrMalformed
	}
	length := int(binary.BigEndian.Uint16(head[14:]))
	if length > maxLength {
		return Header{}, ErrTooLong
	}
	whole := make([]byte, headV2+length)
	copy(whole, head[:])
	if _, err := io.ReadFull(r, whole[headV2:]); err != nil {
		return Header{}, err
	}
	return parseV2(whole)
}

func parseV2(whole []byte) (Header, error) {
	h, rest := Header{}, whole[headV2:]
	size, known := map[byte]int{unspec: 0, tcp4: size4, tcp6: size6, unix: sizeUnix}[whole[13]]
	if whole[12] == local { // the addresses, whatever they are, count for nothing
		if !known || len(rest) < size {
			return h, nil
		}
		return h, extensions(whole, rest[size:])
	}
	if !known || len(rest) < size {
		return h, ErrMalformed
	}
	switch whole[13] {
	case tcp4:
		h = Header{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[0:4])), binary.BigEndian.Uint16(rest[8:])),
			netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[4:8])), binary.BigEndian.Uint16(rest[10:])),
		}
	case tcp6:
		h = Header{
			netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest[0:16])).Unmap(), binary.BigEndian.Uint16(rest[32:])),
			netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest[16:32])).Unmap(), binary.BigEndian.Uint16(rest[34:])),
		}
	}
	if err := extensions(whole, rest[size:]); err != nil {
		return Header{}, err
	}
	return h, nil
}

// extensions checks that type, length and value follow one another to the end, and the checksum where there is one.
func extensions(whole, rest []byte) error {
	for len(rest) > 0 {
		if len(rest) < 3 {
			return ErrMalformed
		}
		size := int(binary.BigEndian.Uint16(rest[1:]))
		if len(rest) < 3+size {
			return ErrMalformed
		}
		if value := rest[3 : 3+size]; rest[0] == checksum {
			if size != 4 {
				return ErrMalformed
			}
			want := binary.BigEndian.Uint32(value)
			clear(value) // it counts as zero
			if crc32.Checksum(whole, crc32.MakeTable(crc32.Castagnoli)) != want {
				return ErrMalformed
			}
			binary.BigEndian.PutUint32(value, want)
		}
		rest = rest[3+size:]
	}
	return nil
}

func (h Header) appendV2(dst []byte) []byte {
	dst = append(dst, signature...)
	if !h.Known() {
		return append(dst, local, unspec, 0, 0)
	}
	source, destination := h.ends()
	if source.Is4() {
		dst = append(dst, proxy, tcp4, 0, size4)
	} else {
		dst = append(dst, proxy, tcp6, 0, size6)
	}
	dst = append(dst, source.AsSlice()...)
	dst = append(dst, destination.AsSlice()...)
	dst = binary.BigEndian.AppendUint16(dst, h.Source.Port())
	return binary.BigEndian.AppendUint16(dst, h.Destination.Port())
}
