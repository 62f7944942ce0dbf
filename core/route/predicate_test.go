package route_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/route"
)

func TestMorePredicatesThenPriorityGoFirst(t *testing.T) {
	yes := true
	get := []string{"GET"}
	table := table(t,
		named("plain", func(r *route.Rule) { r.Path, r.Priority = "/p", 100 }),
		named("query", func(r *route.Rule) { r.Path, r.Query = "/p", []route.Condition{{Key: "q", Exists: &yes}} }),
		named("header", func(r *route.Rule) { r.Path, r.Headers = "/p", []route.Condition{{Key: "H", Exists: &yes}} }),
		named("method", func(r *route.Rule) { r.Path, r.Methods = "/p", get }),
		named("urgent", func(r *route.Rule) {
			r.Path, r.Cookies, r.Priority = "/p", []route.Condition{{Key: "c", Exists: &yes}}, 1
		}),
		named("two", func(r *route.Rule) {
			r.Path, r.Methods, r.Query, r.Priority = "/p", get, []route.Condition{{Key: "q", OneOf: []string{"2"}}}, -1
		}))
	for _, c := range []struct{ method, target, header, cookie, want string }{
		{"PUT", "/p", "", "", "plain"},
		{"PUT", "/p?q", "", "", "query"},
		{"PUT", "/p?q", "1", "", "header"},
		{"GET", "/p?q", "1", "", "method"},
		{"GET", "/p?q", "1", "c=1", "urgent"},
		{"GET", "/p?q=2", "1", "c=1", "two"},
	} {
		x := exchange(c.target)
		x.Request.Method = c.method
		if c.header != "" {
			x.Request.Header.Add("h", c.header)
		}
		if c.cookie != "" {
			x.Request.Header.Add("cookie", c.cookie)
		}
		if got := match(t, table, x); got != c.want {
			t.Errorf("%+v goes to %q", c, got)
		}
	}
}

func TestValuesAreTested(t *testing.T) {
	yes, no := true, false
	equals := route.Condition{OneOf: []string{"v"}}
	oneOf := route.Condition{OneOf: []string{"v", "w w"}}
	matches := route.Condition{Matches: "^v[0-9]$"}
	exists, missing := route.Condition{Exists: &yes}, route.Condition{Exists: &no}
	type lines = []string
	for _, c := range []struct {
		kind string
		test route.Condition
		in   lines // header or cookie lines, or the query
		want bool
	}{
		{"header", equals, lines{"K: v"}, true},
		{"header", equals, lines{"k: v"}, true},
		{"header", equals, lines{"K: V"}, false},
		{"header", equals, lines{"K: v", "K: v"}, false},
		{"header", route.Condition{OneOf: lines{"v, w"}}, lines{"K: v", "k: w"}, true},
		{"header", oneOf, lines{"K: w w"}, true},
		{"header", matches, lines{"K: v1"}, true},
		{"header", matches, lines{"K: v12"}, false},
		{"header", exists, lines{"K: "}, true},
		{"header", exists, lines{"J: v"}, false},
		{"header", missing, lines{"J: v"}, true},
		{"header", missing, lines{"K: "}, false},
		{"header", equals, nil, false},
		{"query", equals, lines{"K=v"}, true},
		{"query", equals, lines{"k=v"}, false},
		{"query", equals, lines{"K=x&K=v"}, false},
		{"query", equals, lines{"&&K=v&K=x"}, true},
		{"query", equals, lines{"%4b=%76"}, true},
		{"query", oneOf, lines{"K=w+w"}, true},
		{"query", oneOf, lines{"K=w%20w"}, true},
		{"query", equals, lines{"a=1;K=v"}, false},
		{"query", route.Condition{OneOf: lines{"v;x=%zz"}}, lines{"K=v;x=%zz"}, true},
		{"query", equals, lines{"x=%zz&K=v"}, true},
		{"query", missing, lines{"%4b=%zz"}, true},
		{"query", equals, lines{strings.Repeat("a=b&", 10_000) + "K=v"}, true},
		{"query", exists, lines{"K"}, true},
		{"query", exists, lines{"KK=1"}, false},
		{"query", matches, lines{"K=%761"}, true},
		{"query", missing, nil, true},
		{"cookie", equals, lines{"a=b; K=v; K=x"}, true},
		{"cookie", equals, lines{"a=b", "K=v"}, true},
		{"cookie", equals, lines{"k=v"}, false},
		{"cookie", equals, lines{`K="v"`}, false},
		{"cookie", equals, lines{"xK=v"}, false},
		{"cookie", route.Condition{OneOf: lines{"a=b"}}, lines{"K=a=b"}, true},
		{"cookie", matches, lines{"; ;K=v1;"}, true},
		{"cookie", exists, lines{"K="}, true},
		{"cookie", missing, lines{"K"}, true},
	} {
		x := exchange("/")
		c.test.Key = "K"
		r := path("/")
		switch c.kind {
		case "header":
			r.Headers = []route.Condition{c.test}
			for _, line := range c.in {
				name, value, _ := strings.Cut(line, ": ")
				x.Request.Header.Add(name, value)
			}
		case "query":
			r.Query = []route.Condition{c.test}
			x.Request.RawQuery = []byte(strings.Join(c.in, ""))
		case "cookie":
			r.Cookies = []route.Condition{c.test}
			for _, line := range c.in {
				x.Request.Header.Add("Cookie", line)
			}
		}
		if got := match(t, table(t, r), x) != ""; got != c.want {
			t.Errorf("%s %+v with %.60q: %v, want %v", c.kind, c.test, c.in, got, c.want)
		}
	}
}

func TestClientsMatchByNetwork(t *testing.T) {
	table := table(t, named("in", func(r *route.Rule) {
		r.Clients = []string{"10.0.0.0/8", "::ffff:172.16.0.0/108", "2001:db8::/32", "192.0.2.7"}
	}))
	for ip, want := range map[string]string{
		"10.1.2.3": "in", "::ffff:10.1.2.3": "in", "11.0.0.1": "", "172.16.9.9": "in", "172.32.0.1": "",
		"2001:db8::1": "in", "2001:db8::1%eth0": "in", "2001:db9::1": "", "192.0.2.7": "in", "192.0.2.8": "",
	} {
		x := exchange("/")
		x.Request.ClientIP = netip.MustParseAddr(ip)
		if got := match(t, table, x); got != want {
			t.Errorf("client %s: %q, want %q", ip, got, want)
		}
	}
	if got := match(t, table, exchange("/")); got != "" {
		t.Errorf("a client without address goes to %q", got)
	}
}

func TestTimesMatch(t *testing.T) {
	var now time.Time
	for _, c := range []struct {
		window route.Window
		now    string
		want   bool
	}{
		{route.Window{After: "2026-01-01T00:00:00Z"}, "2026-01-01T00:00:00Z", true},
		{route.Window{After: "2026-01-01T00:00:00Z"}, "2025-12-31T23:59:59Z", false},
		{route.Window{Before: "2026-01-01T00:00:00Z"}, "2026-01-01T00:00:00Z", false},
		{route.Window{Before: "2026-01-01T01:00:00+01:00"}, "2025-12-31T23:59:59Z", true},
		{route.Window{Daily: "08:00-18:00"}, "2026-01-01T08:00:00Z", true},
		{route.Window{Daily: "08:00-18:00"}, "2026-01-01T17:59:59Z", true},
		{route.Window{Daily: "08:00-18:00"}, "2026-01-01T18:00:00Z", false},
		{route.Window{Daily: "22:00-06:00"}, "2026-01-01T23:00:00Z", true},
		{route.Window{Daily: "22:00-06:00"}, "2026-01-01T05:59:00Z", true},
		{route.Window{Daily: "22:00-06:00"}, "2026-01-01T12:00:00Z", false},
		{route.Window{Daily: "12:00-24:00"}, "2026-01-01T23:59:59Z", true},
		{route.Window{Daily: "08:00-18:00", Zone: "Europe/Berlin"}, "2026-07-01T06:00:00Z", true},
		{route.Window{Daily: "08:00-18:00", Zone: "Europe/Berlin"}, "2026-01-01T06:30:00Z", false},
		{route.Window{Daily: "08:00-18:00", After: "2026-06-01T00:00:00Z"}, "2026-01-01T09:00:00Z", false},
	} {
		r := path("/")
		r.Time = c.window
		table, err := route.NewWith([]route.Rule{r}, route.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		now, _ = time.Parse(time.RFC3339, c.now)
		if got := match(t, table, exchange("/")) != ""; got != c.want {
			t.Errorf("%+v at %s: %v", c.window, c.now, got)
		}
	}
}

func TestMethodsCompareWithCase(t *testing.T) {
	table := table(t, named("any", func(r *route.Rule) { r.Methods = []string{"GET", "PURGE"} }))
	for method, want := range map[string]string{"GET": "any", "PURGE": "any", "HEAD": "", "get": ""} {
		x := exchange("/")
		x.Request.Method = method
		if got := match(t, table, x); got != want {
			t.Errorf("%s goes to %q", method, got)
		}
	}
}

func TestGroupsShareByWeight(t *testing.T) {
	var next uint64
	weighted := func(name string, weight int) route.Rule {
		return named(name, func(r *route.Rule) { r.Path, r.Weight = "/p/{"+name+"}", &weight })
	}
	rules := []route.Rule{weighted("a", 3), weighted("none", 0), weighted("b", 1), path("/**")}
	table, err := route.NewWith(rules, route.Options{Random: func(n uint64) uint64 { next++; return (next - 1) % n }})
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for range 8 {
		x := exchange("/p/1")
		got += match(t, table, x)
		if name := x.Request.Params[0].Name; !strings.HasSuffix(got, name) {
			t.Errorf("the param is named %q after %q", name, got)
		}
	}
	if got != "aaabaaab" {
		t.Errorf("requests went to %q, want aaabaaab", got)
	}
	counts := map[string]int{}
	table, _ = route.New(rules)
	for range 4000 {
		counts[match(t, table, exchange("/p/1"))]++
	}
	if counts["a"] < 2700 || counts["a"] > 3300 || counts["none"] > 0 || counts["a"]+counts["b"] != 4000 {
		t.Errorf("4000 requests were shared %v, want 3 to 1", counts)
	}
}

func TestGroupOfWeightsZeroTakesNothing(t *testing.T) {
	zero := 0
	table := table(t, path("/**"), named("off", func(r *route.Rule) { r.Path, r.Weight = "/p", &zero }))
	if got := match(t, table, exchange("/p")); got != "/**" {
		t.Errorf("goes to %q", got)
	}
}

func TestListenersMatchByName(t *testing.T) {
	table := table(t, named("in", func(r *route.Rule) { r.Listeners = []string{"secure", "grpc"} }), named("out", func(*route.Rule) {}))
	for name, want := range map[string]string{"secure": "in", "grpc": "in", "Secure": "out", "": "out"} {
		x := exchange("/")
		x.Request.Listener = name
		if got := match(t, table, x); got != want {
			t.Errorf("listener %q: %q, want %q", name, got, want)
		}
	}
}
