package core_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

func networks(t testing.TB, texts ...string) *core.Networks {
	t.Helper()
	list, err := core.ParseNetworks(strings.Join(texts, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return core.NewNetworks(list)
}

func TestNetworksContainTheirAddresses(t *testing.T) {
	n := networks(t, "10.0.0.0/8", "192.0.2.7", "10.1.0.0/16", "0.0.0.0/32", "255.255.255.255", "2001:db8::/33", "fd00::1", "::ffff:198.51.100.0/120", "fe80::/64")
	for address, want := range map[string]bool{
		"10.0.0.0": true, "10.255.255.255": true, "9.255.255.255": false, "11.0.0.0": false, "192.0.2.7": true, "192.0.2.8": false, "192.0.2.6": false,
		"0.0.0.0": true, "0.0.0.1": false, "255.255.255.255": true, "255.255.255.254": false, "::ffff:10.2.3.4": true, "198.51.100.200": true,
		"2001:db8::": true, "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff": true, "2001:db8:8000::": false, "fd00::1": true, "fd00::2": false, "fd00::": false,
		"fe80::1%eth0": true, "::1": false, "::a00:1": false,
	} {
		if got := n.Contains(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
	if n.Contains(netip.Addr{}) || new(core.Networks).Contains(netip.MustParseAddr("10.0.0.1")) {
		t.Error("no address, or no network, and yet it is in")
	}
	if n.Len() != 8 {
		t.Errorf("%d ranges are left, want 8", n.Len())
	}
	for _, all := range []string{"0.0.0.0/0", "::/0"} {
		a := networks(t, all)
		if v4 := a.Contains(netip.MustParseAddr("255.1.2.3")); v4 != (all == "0.0.0.0/0") {
			t.Errorf("%s has an IPv4 address: %v", all, v4)
		}
		if v6 := a.Contains(netip.MustParseAddr("ffff::1")); v6 != (all == "::/0") {
			t.Errorf("%s has an IPv6 address: %v", all, v6)
		}
	}
}

// TestNetworksAgreeWithTheObvious compares with asking every prefix.
func TestNetworksAgreeWithTheObvious(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var list []netip.Prefix
		for range random.IntN(60) {
			list = append(list, netip.PrefixFrom(address(random), 0))
			last := &list[len(list)-1]
			*last = netip.PrefixFrom(last.Addr(), random.IntN(last.Addr().BitLen()+1))
		}
		n := core.NewNetworks(list)
		for range 200 {
			a, want := address(random), false
			if len(list) > 0 && random.IntN(2) == 0 {
				a = list[random.IntN(len(list))].Masked().Addr()
			}
			for _, p := range list {
				want = want || p.Contains(a)
			}
			if n.Contains(a) != want {
				t.Fatalf("%s in %v: got %v", a, list, !want)
			}
		}
	}
}

// address gives one of few, so that networks meet.
func address(random *rand.Rand) netip.Addr {
	if random.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{10, byte(random.IntN(3)), byte(random.IntN(256)), byte(random.IntN(256))})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 7: byte(random.IntN(4)), 8: byte(random.IntN(256)), 15: byte(random.IntN(256))})
}

func TestWhatIsNoNetworkIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8\n# a comment\n\n10.0.0.0/33": `line 4: "10.0.0.0/33" is no network`,
		"localhost":                              `line 1: "localhost" is no network`,
		"fe80::1%eth0":                           `line 1: "fe80::1%eth0" is no network`,
	} {
		if _, err := core.ParseNetworks(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	list, err := core.ParseNetworks("\ufeff"[:0] + "10.1.2.3/8 # office\r\n  ::ffff:192.0.2.1  \n")
	if err != nil || fmt.Sprint(list) != "[10.0.0.0/8 192.0.2.1/32]" {
		t.Errorf("got %v, %v", list, err)
	}
}

func BenchmarkNetworks(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var list []netip.Prefix
	for range 5000 {
		v4 := [4]byte{byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256))}
		v6 := [16]byte{0x20, 1, byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256))}
		list = append(list, netip.PrefixFrom(netip.AddrFrom4(v4), 24), netip.PrefixFrom(netip.AddrFrom16(v6), 48))
	}
	n := core.NewNetworks(list)
	for name, of := range map[string]func(i int) netip.Addr{
		"v4": func(i int) netip.Addr {
			return netip.AddrFrom4([4]byte{byte(i * 7), byte(i * 13), byte(i * 31), byte(i)})
		},
		"v6": func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 1, byte(i * 7), byte(i * 13), byte(i * 31), byte(i)})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				n.Contains(of(i))
			}
		})
	}
}
