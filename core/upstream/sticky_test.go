package upstream_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

func kept(urls ...string) upstream.Options {
	o := options(urls...)
	o.Sticky.Cookie = &upstream.StickyCookie{Name: "s", Secret: "a secret of the test"}
	return o
}

// bringing is a request with that Cookie line.
func bringing(cookies string) *core.Exchange {
	x := new(core.Exchange)
	x.Request.Header.Add("Cookie", cookies)
	return x
}

func TestAMarkSaysWhoseItIsAndNothingElse(t *testing.T) {
	u := open(t, kept(urlA, urlB, urlC), nil)
	seen := map[string]bool{}
	for _, e := range u.Endpoints() {
		m := u.Mark(e)
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{20}$`).MatchString(m) || strings.Contains(m, "test") {
			t.Errorf("the mark of %s is %s", e, m)
		}
		if seen[m] = true; u.Kept(bringing("a=1; s="+m+"; b=2")) != e {
			t.Errorf("the mark of %s is not known", e)
		}
	}
	if len(seen) != 3 {
		t.Error("endpoints share a mark")
	}
	for _, cookies := range []string{"", "s=", "s=127.0.0.1", "S=" + u.Mark(u.Endpoints()[0]), "s=x" + u.Mark(u.Endpoints()[0]), "s=" + u.Mark(u.Endpoints()[0])[1:]} {
		if e := u.Kept(bringing(cookies)); e != nil {
			t.Errorf("%q is taken for %s", cookies, e)
		}
	}
	if u.Kept(nil) != nil || u.Kept(new(core.Exchange)) != nil {
		t.Error("who brings nothing is kept")
	}
}

func TestMarksAreTheSameWhereverTheSecretIs(t *testing.T) {
	u := open(t, kept(urlA, urlB), nil)
	again := open(t, kept(urlC, urlB, urlA), nil) // another gateway, another order
	if u.Mark(u.Endpoints()[0]) != again.Mark(again.Endpoints()[2]) {
		t.Error("another gateway makes another mark")
	}
	o := kept(urlA, urlB)
	o.Sticky.Cookie = &upstream.StickyCookie{Name: "s", Secret: "another secret, as long"}
	if other := open(t, o, nil); other.Mark(other.Endpoints()[0]) == u.Mark(u.Endpoints()[0]) {
		t.Error("another secret makes the same mark")
	}
	o = kept(urlA, urlB)
	o.Name = "other"
	if other := open(t, o, nil); other.Mark(other.Endpoints()[0]) == u.Mark(u.Endpoints()[0]) {
		t.Error("the same endpoint of another upstream has the same mark")
	}
}

func TestADrainedEndpointKeepsNobody(t *testing.T) {
	o := kept(urlA, urlB)
	o.Endpoints[0].Weight = 0
	u := open(t, o, nil)
	if u.Kept(bringing("s="+u.Mark(u.Endpoints()[0]))) != nil {
		t.Error("it does")
	}
}

func TestAClientStaysWhereItWasAsLongAsThatMayBeAsked(t *testing.T) {
	for _, balance := range []string{"round_robin", "least_conn", "p2c_ewma", "consistent_hash"} {
		t.Run(balance, func(t *testing.T) {
			o := kept(urlA, urlB, urlC)
			o.Balance = balance
			u := open(t, o, nil)
			b := u.Endpoints()[1]
			for range 20 {
				a, err := u.BeginKept(b, "", nil)
				if err != nil || a.Endpoint != b {
					t.Fatalf("%v, %v", a.Endpoint, err)
				}
				if l := u.Load(b); l != nil && l.Active() != 1 {
					t.Fatalf("%d are under way", l.Active())
				}
				a.Succeeded()
				a.Leave()
			}
			a, err := u.BeginKept(b, "", []*core.Endpoint{b})
			if err != nil || a.Endpoint == b {
				t.Errorf("tried in vain, and asked again: %v, %v", a.Endpoint, err)
			}
			a.Ended()
			a.Leave()
			for range 3 {
				a, _ := u.BeginKept(b, "", nil)
				a.Failed()
				a.Leave()
			}
			for range 10 {
				if a, err := u.BeginKept(b, "", nil); err != nil || a.Endpoint == b {
					t.Fatalf("it is out, and asked: %v, %v", a.Endpoint, err)
				}
			}
		})
	}
}

func TestPickKeepsClientsToo(t *testing.T) {
	u := open(t, kept(urlA, urlB, urlC), nil)
	c := u.Endpoints()[2]
	for range 9 {
		if e, err := u.Pick(bringing("s="+u.Mark(c)), ""); err != nil || e != c {
			t.Fatalf("%v, %v", e, err)
		}
	}
}

func TestHeaderAndAddressNameTheEndpoint(t *testing.T) {
	header := func(value string) *core.Exchange {
		x := new(core.Exchange)
		x.Request.Header.Add("X-Session", value)
		return x
	}
	address := func(text string) *core.Exchange {
		x := new(core.Exchange)
		x.Request.ClientIP = netip.MustParseAddr(text)
		return x
	}
	for _, c := range []struct {
		name   string
		sticky upstream.StickyOptions
		client func(n int) *core.Exchange
	}{
		{"header", upstream.StickyOptions{Header: "x-session"}, func(n int) *core.Exchange { return header(fmt.Sprint("session-", n)) }},
		{"address", upstream.StickyOptions{IP: true}, func(n int) *core.Exchange { return address(fmt.Sprintf("10.0.%d.7", n)) }},
	} {
		for _, balance := range []string{"round_robin", "least_conn", "p2c_ewma", "consistent_hash"} {
			t.Run(c.name+"/"+balance, func(t *testing.T) {
				o := options(urlA, urlB, urlC)
				o.Balance, o.Sticky = balance, c.sticky
				u := open(t, o, nil)
				var homes [3][]int
				for n := range 90 {
					first, err := u.Begin(u.Key(c.client(n)), nil)
					if err != nil {
						t.Fatal(err)
					}
					again, _ := u.Begin(u.Key(c.client(n)), nil)
					if first.Endpoint != again.Endpoint {
						t.Fatalf("client %d goes to %s and to %s", n, first.Endpoint, again.Endpoint)
					}
					picked, _ := u.Pick(c.client(n), "")
					if picked != first.Endpoint {
						t.Fatalf("client %d goes to %s and is picked %s", n, first.Endpoint, picked)
					}
					homes[first.Endpoint.Index] = append(homes[first.Endpoint.Index], n)
				}
				for i, l := range homes {
					if len(l) < 10 { // of 30; the hash is the same in every run
						t.Errorf("endpoint %d has %d of 90 clients", i, len(l))
					}
				}
				for range 3 {
					a, _ := u.BeginAt(u.Endpoints()[0])
					a.Failed()
				}
				for n := range 90 {
					a, err := u.Begin(u.Key(c.client(n)), nil)
					if err != nil || a.Endpoint.Index == 0 {
						t.Fatalf("client %d: %v, %v", n, a.Endpoint, err)
					}
					if !slices.Contains(homes[0], n) && !slices.Contains(homes[a.Endpoint.Index], n) {
						t.Errorf("client %d moved though its endpoint stayed", n)
					}
				}
			})
		}
	}
}

func TestWhoHasNoKeyIsBalanced(t *testing.T) {
	o := options(urlA, urlB, urlC)
	o.Sticky.Header = "X-Session"
	u := open(t, o, nil)
	own := new(core.Exchange)
	own.Request.Own = true
	own.Request.Header.Add("X-Session", "tom")
	empty := new(core.Exchange)
	empty.Request.Header.Add("X-Session", "")
	for name, x := range map[string]*core.Exchange{"none": new(core.Exchange), "an empty one": empty, "the gateway's own": own} {
		var got strings.Builder
		for range 6 {
			a, _ := u.Begin(u.Key(x), nil)
			got.WriteByte(a.Endpoint.Authority[0])
			a.Ended()
		}
		if got.String() != "abcabc" {
			t.Errorf("%s goes to %s", name, got.String())
		}
	}
	x := new(core.Exchange)
	x.Request.Header.Add("X-Session", "tom")
	x.HashKey = "ann"
	if key := u.Key(x); key != "ann" {
		t.Errorf("a filter's key gives way to %q", key)
	}
	o.Sticky = upstream.StickyOptions{IP: true}
	if key := open(t, o, nil).Key(new(core.Exchange)); key != "" { // over a Unix socket
		t.Errorf("who has no address goes by %q", key)
	}
}
