package core_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

func headerOf(lines ...string) *core.Header {
	h := new(core.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func text(h *core.Header) string {
	var lines []string
	for _, f := range h.Fields() {
		lines = append(lines, string(f.Name)+": "+string(f.Value))
	}
	return strings.Join(lines, " | ")
}

func TestHeadersAreListsThatKeepTheirOrder(t *testing.T) {
	base := []string{"A: 1", "Set-Cookie: x", "b: 2", "set-cookie: y", "A: 3"}
	for _, c := range []struct {
		name string
		do   func(*core.Header)
		want string
	}{
		{"add goes last", func(h *core.Header) { h.Add("a", "4") }, "A: 1 | Set-Cookie: x | b: 2 | set-cookie: y | A: 3 | a: 4"},
		{"set takes the first place", func(h *core.Header) { h.Set("a", "4") }, "A: 4 | Set-Cookie: x | b: 2 | set-cookie: y"},
		{"set of a new name goes last", func(h *core.Header) { h.Set("c", "4") }, "A: 1 | Set-Cookie: x | b: 2 | set-cookie: y | A: 3 | c: 4"},
		{"set of a known kind", func(h *core.Header) { h.Set("SET-COOKIE", "z") }, "A: 1 | Set-Cookie: z | b: 2 | A: 3"},
		{"delete takes all", func(h *core.Header) { h.Del("A") }, "Set-Cookie: x | b: 2 | set-cookie: y"},
		{"delete of a name that is not there", func(h *core.Header) { h.Del("nope") }, "A: 1 | Set-Cookie: x | b: 2 | set-cookie: y | A: 3"},
		{"delete by kind", func(h *core.Header) { h.DelKind(core.KindSetCookie) }, "A: 1 | b: 2 | A: 3"},
		{"delete of a kind that is not there", func(h *core.Header) { h.DelKind(core.KindHost) }, "A: 1 | Set-Cookie: x | b: 2 | set-cookie: y | A: 3"},
		{"reset", func(h *core.Header) { h.Reset() }, ""},
	} {
		h := headerOf(base...)
		c.do(h)
		if got := text(h); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	h := headerOf(base...)
	if n := h.Del("a"); n != 2 {
		t.Errorf("deleting told of %d lines", n)
	}
	if h.CountKind(core.KindSetCookie) != 2 || string(h.GetKind(core.KindSetCookie)) != "x" || h.GetKind(core.KindHost) != nil {
		t.Error("lookups by kind are wrong")
	}
	if empty := headerOf("E: "); empty.Get("e") == nil || !empty.Has("E") || empty.Has("F") {
		t.Error("an empty value is a value")
	}
}

func TestACopyIsAListOfItsOwn(t *testing.T) {
	a := headerOf("A: 1", "B: 2")
	var b core.Header
	b.Add("old", "x")
	b.CopyFrom(a)
	b.Set("A", "3")
	b.Del("B")
	if text(a) != "A: 1 | B: 2" || text(&b) != "A: 3" {
		t.Errorf("%s and %s", text(a), text(&b))
	}
}

func TestAllConnectionLinesAreOneList(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Connection: |X-A: 1|connection: close, X-A ,, x-b|X-B: 2|X-C: 3|Keep-Alive: 5", "X-C: 3 | Keep-Alive: 5"},
		{"Connection: Host, Content-Length, Transfer-Encoding, TE, Upgrade|Host: h|Content-Length: 1|TE: trailers|Upgrade: x", "Host: h | Content-Length: 1 | TE: trailers | Upgrade: x"},
		{"Connection: Connection|Connection: X-A|X-A: 1", ""},
		{"X-A: 1", "X-A: 1"},
		{"X-Forwarded-For: 1|Connection: x-forwarded-for", ""},
	} {
		h := headerOf(strings.Split(c.in, "|")...)
		h.DropNominated()
		if got := text(h); got != c.want {
			t.Errorf("%s left %s, want %s", c.in, got, c.want)
		}
	}
}

// TestHeadersBehaveLikeAPlainList runs random changes on a header and on the simplest list there is.
func TestHeadersBehaveLikeAPlainList(t *testing.T) {
	names := []string{"A", "a", "Host", "host", "X-Forwarded-For", "Set-Cookie", "B"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var h core.Header
		var list [][2]string
		drop := func(keep func(i int, name string) bool) {
			kept := [][2]string{}
			for i, f := range list {
				if keep(i, f[0]) {
					kept = append(kept, f)
				}
			}
			list = kept
		}
		for step := range 12 {
			name, value := names[rng.IntN(len(names))], fmt.Sprint(step)
			switch rng.IntN(4) {
			case 0, 1:
				h.Add(name, value)
				list = append(list, [2]string{name, value})
			case 2:
				h.Set(name, value)
				first := -1
				for i, f := range list {
					if strings.EqualFold(f[0], name) {
						first = i
						break
					}
				}
				if first < 0 {
					list = append(list, [2]string{name, value})
				} else {
					list[first][1] = value
					drop(func(i int, n string) bool { return i <= first || !strings.EqualFold(n, name) })
				}
			case 3:
				h.Del(name)
				drop(func(_ int, n string) bool { return !strings.EqualFold(n, name) })
			}
			var want []string
			for _, f := range list {
				want = append(want, f[0]+": "+f[1])
			}
			if got := text(&h); got != strings.Join(want, " | ") {
				t.Fatalf("got %s, want %s", got, strings.Join(want, " | "))
			}
		}
	}
}

func TestLookupsAllocateNothing(t *testing.T) {
	h := headerOf("Host: a", "X-A: 1", "X-B: 2")
	if n := testing.AllocsPerRun(100, func() {
		_ = h.Get("x-b")
		_ = h.GetKind(core.KindHost)
		h.Set("X-A", "3")
		_ = h.Has("nope")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKindsKnowTheirNamesInAnyCase(t *testing.T) {
	for name, want := range map[string]core.Kind{
		"Host": core.KindHost, "hOST": core.KindHost, "TE": core.KindTE, "te": core.KindTE, "Keep-Alive": core.KindHop, "proxy-connection": core.KindHop,
		"X-Forwarded-Prefix": core.KindForwardedPrefix, "X-Real-IP": core.KindForwarded, "Date": core.KindDate, "TRANSFER-ENCODING": core.KindTransferEncoding,
		"": core.KindOther, "x": core.KindOther, "Hosts": core.KindOther, "(ost": core.KindOther, "X-Forwarded-Prefixes": core.KindOther, "\x48ost\x00": core.KindOther,
		"keep_alive": core.KindOther, "@e": core.KindOther,
	} {
		if got := core.KindOf([]byte(name)); got != want {
			t.Errorf("%q is kind %d, want %d", name, got, want)
		}
	}
	for kind, hop := range map[core.Kind]bool{core.KindConnection: true, core.KindTransferEncoding: true, core.KindUpgrade: true, core.KindTrailer: true, core.KindTE: true,
		core.KindHop: true, core.KindHost: false, core.KindContentLength: false, core.KindOther: false, core.KindForwardedFor: false, core.KindExpect: false} {
		if kind.Hop() != hop {
			t.Errorf("kind %d: hop %v", kind, kind.Hop())
		}
	}
}

func TestAlphabetsAreThoseOfRFC9110(t *testing.T) {
	for c := range 256 {
		b := byte(c)
		token := strings.IndexByte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", b) >= 0
		if core.IsTokenByte(b) != token || core.IsToken([]byte{'a', b}) != token {
			t.Errorf("token byte %#x: want %v", b, token)
		}
		value := b == '\t' || b >= ' ' && b != 0x7f
		if core.IsValue([]byte{'a', b}) != value {
			t.Errorf("value byte %#x: want %v", b, value)
		}
	}
	if core.IsToken(nil) || !core.IsValue(nil) {
		t.Error("an empty token is none, an empty value is one")
	}
}

func TestListsAreSplitAtCommas(t *testing.T) {
	for in, want := range map[string]string{"": "", " , ,,": "", "a": "a", " a ,\tb\t,, c d": "a|b|c d", ",a": "a"} {
		var got []string
		for item, rest := core.NextItem([]byte(in)); item != nil; item, rest = core.NextItem(rest) {
			got = append(got, string(item))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q gave %q", in, got)
		}
	}
	if !core.HasItem([]byte("gzip, Trailers"), "trailers") || core.HasItem([]byte("trailersx, a=trailers"), "trailers") {
		t.Error("HasItem is wrong")
	}
}
