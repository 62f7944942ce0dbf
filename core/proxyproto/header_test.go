package proxyproto_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moongate/moongate/core/proxyproto"
)

const sig = "\r\n\r\n\x00\r\nQUIT\n"

func TestHeadersAreRead(t *testing.T) {
	four := "\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x02\x30\x39\x01\xbb"
	for _, c := range []struct{ name, in, source, destination string }{
		{"v1 TCP4", "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n", "192.0.2.1:12345", "198.51.100.2:443"},
		{"v1 TCP6", "PROXY TCP6 2001:db8::1 2001:db8::2 1 0\r\n", "[2001:db8::1]:1", "[2001:db8::2]:0"},
		{"v1 longest", "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
			"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
		{"v1 mapped", "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n", "192.0.2.1:1", "[2001:db8::2]:2"},
		{"v1 unknown", "PROXY UNKNOWN\r\n", "", ""},
		{"v1 unknown with more", "PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", "", ""},
		{"v2 TCP4", sig + "\x21\x11" + four, "192.0.2.1:12345", "198.51.100.2:443"},
		{"v2 TCP6", sig + "\x21\x21\x00\x24" + strings.Repeat("\x20\x01", 8) + strings.Repeat("\x20\x02", 8) + "\x00\x01\x00\x02",
			"[2001:2001:2001:2001:2001:2001:2001:2001]:1", "[2002:2002:2002:2002:2002:2002:2002:2002]:2"},
		{"v2 local", sig + "\x20\x00\x00\x00", "", ""},
		{"v2 local with addresses", sig + "\x20\x11" + four, "", ""},
		{"v2 unspecified", sig + "\x21\x00\x00\x00", "", ""},
		{"v2 unix", sig + "\x21\x31\x00\xd8" + strings.Repeat("/", 216), "", ""},
		{"v2 with extensions", sig + "\x21\x11\x00\x13" + four[2:] + "\x04\x00\x00\xe0\x00\x01x", "192.0.2.1:12345", "198.51.100.2:443"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
				in := strings.NewReader(c.in + "GET /")
				h, err := proxyproto.Read(r(in))
				if err != nil {
					t.Fatal(err)
				}
				if c.source == "" {
					if h.Known() || h != (proxyproto.Header{}) {
						t.Errorf("got %v", h)
					}
				} else if h.Source.String() != c.source || h.Destination.String() != c.destination {
					t.Errorf("got %v", h)
				}
				if rest, _ := io.ReadAll(in); string(rest) != "GET /" {
					t.Errorf("what follows is %q", rest)
				}
			}
		})
	}
}

func TestWhatIsNotQuiteAHeaderIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     error
	}{
		{"HTTP", "GET / HTTP/1.1\r\n\r\n", proxyproto.ErrMissing},
		{"HTTP by POST", "POST /aaaaaaaa HTTP/1.1\r\n\r\n", proxyproto.ErrMissing},
		{"TLS", "\x16\x03\x01", proxyproto.ErrMissing},
		{"empty lines", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n", proxyproto.ErrMissing},
		{"lower case", "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n", proxyproto.ErrMissing},
		{"too long", "PROXY UNKNOWN " + strings.Repeat("x", 92) + "\r\n", proxyproto.ErrTooLong},
		{"bare LF", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n", proxyproto.ErrMalformed},
		{"short bare LF", "PROXY UNK\n\n\n\n\n\n", proxyproto.ErrMalformed},
		{"CR inside", "PROXY UNKNOWN \r \r\n", proxyproto.ErrMalformed},
		{"two spaces", "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n", proxyproto.ErrMalformed},
		{"two spaces inside", "PROXY TCP4 192.0.2.1  192.0.2.2 1 2\r\n", proxyproto.ErrMalformed},
		{"space at the end", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n", proxyproto.ErrMalformed},
		{"a tab", "PROXY TCP4\t192.0.2.1 192.0.2.2 1 2\r\n", proxyproto.ErrMalformed},
		{"UDP4", "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n", proxyproto.ErrMalformed},
		{"no ports", "PROXY TCP4 192.0.2.1 192.0.2.2\r\n", proxyproto.ErrMalformed},
		{"one port", "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n", proxyproto.ErrMalformed},
		{"an empty port", "PROXY TCP4 192.0.2.1 192.0.2.2 1 \r\n", proxyproto.ErrMalformed},
		{"three ports", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n", proxyproto.ErrMalformed},
		{"IPv6 as TCP4", "PROXY TCP4 ::1 ::2 1 2\r\n", proxyproto.ErrMalformed},
		{"IPv4 as TCP6", "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", proxyproto.ErrMalformed},
		{"a leading zero", "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n", proxyproto.ErrMalformed},
		{"a zone", "PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n", proxyproto.ErrMalformed},
		{"a port with a zero", "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n", proxyproto.ErrMalformed},
		{"a port too large", "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n", proxyproto.ErrMalformed},
		{"a signed port", "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n", proxyproto.ErrMalformed},
		{"UNKNOWN and more", "PROXY UNKNOWNX\r\n", proxyproto.ErrMalformed},
		{"cut", "PROXY TCP4 192.0.2.1 ", io.EOF},
		{"nothing", "", io.EOF},
		{"v2 of version 1", sig + "\x11\x11\x00\x0c" + strings.Repeat("x", 12), proxyproto.ErrMalformed},
		{"v2 with another command", sig + "\x22\x11\x00\x0c" + strings.Repeat("x", 12), proxyproto.ErrMalformed},
		{"v2 UDP", sig + "\x21\x12\x00\x0c" + strings.Repeat("x", 12), proxyproto.ErrMalformed},
		{"v2 too short", sig + "\x21\x11\x00\x0b" + strings.Repeat("x", 11), proxyproto.ErrMalformed},
		{"v2 too long", sig + "\x21\x11\xff\xff", proxyproto.ErrTooLong},
		{"v2 cut", sig + "\x21\x11\x00\x0c" + "x", io.ErrUnexpectedEOF},
		{"v2 with half an extension", sig + "\x21\x11\x00\x0e" + strings.Repeat("x", 12) + "\x04\x00", proxyproto.ErrMalformed},
		{"v2 with a long extension", sig + "\x21\x11\x00\x10" + strings.Repeat("x", 12) + "\x04\x00\x02x", proxyproto.ErrMalformed},
		{"v2 with a wrong checksum", sig + "\x21\x11\x00\x13" + strings.Repeat("x", 12) + "\x03\x00\x04abcd", proxyproto.ErrMalformed},
		{"v2 with an odd checksum", sig + "\x21\x11\x00\x10" + strings.Repeat("x", 12) + "\x03\x00\x01a", proxyproto.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			if h, err := proxyproto.Read(strings.NewReader(c.in)); !errors.Is(err, c.want) {
				t.Errorf("got %v, %v, want %v", h, err, c.want)
			}
		})
	}
}

func TestAChecksumIsVerified(t *testing.T) {
	b := []byte(sig + "\x21\x11\x00\x13" + strings.Repeat("x", 12) + "\x03\x00\x04\x00\x00\x00\x00")
	binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := proxyproto.Read(bytes.NewReader(b)); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, c := range [][2]string{{"192.0.2.1:1", "192.0.2.2:65535"}, {"[2001:db8::1]:1", "[::1]:2"}, {"192.0.2.1:1", "[2001:db8::1]:2"}, {"[::ffff:192.0.2.1]:1", "192.0.2.2:2"}} {
		h := proxyproto.Header{Source: netip.MustParseAddrPort(c[0]), Destination: netip.MustParseAddrPort(c[1])}
		for _, version := range []int{proxyproto.V1, proxyproto.V2} {
			got, err := proxyproto.Read(bytes.NewReader(h.Append(nil, version)))
			if err != nil || got.Source.Addr() != h.Source.Addr().Unmap() || got.Destination.Addr() != h.Destination.Addr().Unmap() ||
				got.Source.Port() != h.Source.Port() || got.Destination.Port() != h.Destination.Port() {
				t.Errorf("%v in version %d became %v, %v", h, version, got, err)
			}
		}
	}
	for _, version := range []int{proxyproto.V1, proxyproto.V2} {
		if got, err := proxyproto.Read(bytes.NewReader(proxyproto.Header{}.Append(nil, version))); err != nil || got.Known() {
			t.Errorf("nothing in version %d became %v, %v", version, got, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\nGET /"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(sig + "\x21\x11\x00\x13xxxxxxxxxxxx\x03\x00\x04abcd"))
	f.Add([]byte(sig + "\x20\x21\x00\x24" + strings.Repeat("x", 36)))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		h, err := proxyproto.Read(r)
		if err != nil {
			if h != (proxyproto.Header{}) {
				t.Errorf("%v beside %v", h, err)
			}
			return
		}
		if h.Source.Addr().Is4In6() || h.Source.Addr().Zone() != "" || h.Source.Addr().IsValid() != h.Destination.Addr().IsValid() {
			t.Errorf("got %v", h)
		}
		took := in[:len(in)-r.Len()]
		if took[0] == 'P' && (len(took) > 107 || !bytes.HasSuffix(took, []byte("\r\n")) || bytes.Count(took, []byte("\n")) != 1) {
			t.Errorf("took %q", took)
		}
		if want := plainly(took); want != h {
			t.Errorf("%q is %v, want %v", took, h, want)
		}
		for _, version := range []int{proxyproto.V1, proxyproto.V2} {
			if again, err := proxyproto.Read(bytes.NewReader(h.Append(nil, version))); err != nil || again != h {
				t.Errorf("%v became %v, %v", h, again, err)
			}
		}
	})
}

var lineV1 = regexp.MustCompile(`^PROXY (TCP[46]) ([0-9.]+|[0-9a-fA-F:.]+) ([0-9.]+|[0-9a-fA-F:.]+) ([0-9]+) ([0-9]+)\r\n$`)

// plainly reads a header that is known to be well-formed in the most obvious way; net/http knows none of these.
func plainly(b []byte) (h proxyproto.Header) {
	if m := lineV1.FindSubmatch(b); m != nil {
		h.Source = netip.MustParseAddrPort(net.JoinHostPort(string(m[2]), string(m[4])))
		h.Destination = netip.MustParseAddrPort(net.JoinHostPort(string(m[3]), string(m[5])))
	} else if size := 4; len(b) > 16 && b[12] == 0x21 && (b[13] == 0x11 || b[13] == 0x21) {
		if b[13] == 0x21 {
			size = 16
		}
		source, _ := netip.AddrFromSlice(b[16 : 16+size])
		destination, _ := netip.AddrFromSlice(b[16+size : 16+2*size])
		ports := b[16+2*size:]
		h.Source = netip.AddrPortFrom(source, uint16(ports[0])<<8|uint16(ports[1]))
		h.Destination = netip.AddrPortFrom(destination, uint16(ports[2])<<8|uint16(ports[3]))
	}
	if !h.Source.IsValid() {
		return h
	}
	return proxyproto.Header{Source: netip.AddrPortFrom(h.Source.Addr().Unmap(), h.Source.Port()), Destination: netip.AddrPortFrom(h.Destination.Addr().Unmap(), h.Destination.Port())}
}
