package auth_test

import (
	"net/netip"
	"testing"

	"github.com/moongate/moongate/core/auth"
)

func TestClientIP(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name  string
		peer  string
		lines []string
		want  string
	}{
		{"untrusted peer", "192.0.2.1", []string{"127.0.0.1"}, "192.0.2.1"},
		{"trusted peer alone", "10.0.0.1", nil, "10.0.0.1"},
		{"one entry", "10.0.0.1", []string{"192.0.2.1"}, "192.0.2.1"},
		{"two lines", "10.0.0.1", []string{"1.1.1.1", "6.6.6.6, 10.0.0.9"}, "6.6.6.6"},
		{"a line of trusted ones", "10.0.0.1", []string{"1.1.1.1, 6.6.6.6", "10.0.0.8,10.0.0.9"}, "6.6.6.6"},
		{"all trusted", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"garbage behind an address", "10.0.0.1", []string{"6.6.6.6, unknown, 10.0.0.9"}, "10.0.0.9"},
		{"garbage last", "10.0.0.1", []string{"6.6.6.6, unknown"}, "10.0.0.1"},
		{"garbage before the client", "10.0.0.1", []string{"unknown, 6.6.6.6"}, "6.6.6.6"},
		{"empty entries", "10.0.0.1", []string{"6.6.6.6", "", ",10.0.0.9,, "}, "6.6.6.6"},
		{"a port", "10.0.0.1", []string{"6.6.6.6:1234, 10.0.0.9:80"}, "6.6.6.6"},
		{"a port out of range", "10.0.0.1", []string{"6.6.6.6:99999"}, "10.0.0.1"},
		{"IPv6", "fd00::1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv6 in brackets", "fd00::1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 with a port", "fd00::1", []string{"[2001:db8::1]:443, [fd00::2]:80"}, "2001:db8::1"},
		{"IPv4 in brackets", "10.0.0.1", []string{"[6.6.6.6]"}, "10.0.0.1"},
		{"an open bracket", "10.0.0.1", []string{"["}, "10.0.0.1"},
		{"a zone", "10.0.0.1", []string{"fe80::1%eth0"}, "10.0.0.1"},
		{"leading zeros", "10.0.0.1", []string{"010.0.0.9"}, "10.0.0.1"},
		{"mapped peer", "::ffff:10.0.0.1", []string{"::ffff:6.6.6.6"}, "6.6.6.6"},
		{"quotes", "10.0.0.1", []string{`"6.6.6.6"`}, "10.0.0.1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var lines [][]byte
			for _, line := range test.lines {
				lines = append(lines, []byte(line))
			}
			if got := auth.ClientIP(netip.MustParseAddr(test.peer), trusted, lines); got != netip.MustParseAddr(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	lines := [][]byte{[]byte("1.1.1.1"), []byte("6.6.6.6:80, 10.0.0.9")}
	peer := netip.MustParseAddr("10.0.0.1")
	if n := testing.AllocsPerRun(100, func() { auth.ClientIP(peer, trusted, lines) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzClientIP(f *testing.F) {
	f.Add("1.1.1.1", "6.6.6.6:80, [fd00::1]:80, 10.0.0.9")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	f.Fuzz(func(t *testing.T, first, second string) {
		peer := netip.MustParseAddr("192.0.2.1")
		lines := [][]byte{[]byte(first), []byte(second)}
		if got := auth.ClientIP(peer, trusted, lines); got != peer {
			t.Fatalf("an untrusted peer became %s", got)
		}
		if got := auth.ClientIP(netip.MustParseAddr("10.0.0.1"), trusted, lines); !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Fatalf("got %v", got)
		}
	})
}
