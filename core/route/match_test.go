package route_test

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

// named makes a rule of a name and what set does to it.
func named(name string, set func(*route.Rule)) route.Rule {
	r := route.Rule{Route: &core.Route{Name: name, BodyBuffer: 1 << 20}}
	set(&r)
	return r
}

func path(p string) route.Rule { return named(p, func(r *route.Rule) { r.Path = p }) }

func prefix(p string) route.Rule { return named(p, func(r *route.Rule) { r.PathPrefix = p }) }

func expression(p string) route.Rule { return named(p, func(r *route.Rule) { r.PathRegex = p }) }

func host(h, p string) route.Rule {
	return named(h+p, func(r *route.Rule) { r.Hosts, r.Path = []string{h}, p })
}

func table(t testing.TB, rules ...route.Rule) *route.Table {
	t.Helper()
	table, err := route.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func exchange(target string) *core.Exchange {
	x := &core.Exchange{}
	r := &x.Request
	r.Method, r.Host = "GET", []byte("gateway.test")
	p, q, _ := strings.Cut(target, "?")
	r.Path, r.RawQuery = []byte(p), []byte(q)
	return x
}

// match gives the name of the route that takes an exchange, "" for none.
func match(t testing.TB, table *route.Table, x *core.Exchange) string {
	t.Helper()
	rt, err := table.Match(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	if rt == nil {
		return ""
	}
	return rt.Name
}

func TestPathsMatch(t *testing.T) {
	for _, c := range []struct {
		rule     route.Rule
		yes, not string
	}{
		{path("/a/b"), "/a/b /a;x=1/b;y", "/a /a/b/ /a/b/c /A/b"},
		{path("/a/"), "/a/ /a/;s=1", "/a /a/b"},
		{path("/"), "/", "/a"},
		{path("/a/*"), "/a/b /a/b;x /a/%2F", "/a /a/ /a/b/ /a/b/c /a/;x"},
		{path("/a/*/c"), "/a/b/c", "/a/c /a//c"},
		{path("/a/{id}"), "/a/1", "/a/ /a"},
		{path("/api/user/**"), "/api/user /api/user/ /api/user/1 /api/user/1/2/", "/api/username /api /api/users/1"},
		{path("/**"), "/ /a /a/b/ *", ""},
		{path("/a/**/z"), "/a/z /a/b/z /a/b/c/z /a/z/z", "/a /z /a/z/ /a/zz"},
		{path("/**/z"), "/z /a/z", "/a/z/b"},
		{path("/**/m/**"), "/m /a/m /a/m/b /m/m", "/a/b"},
		{path("/a/*/**"), "/a/b /a/b/ /a/b/c", "/a /a/"},
		{prefix("/api/user"), "/api/user /api/user/ /api/user/1", "/api/username /api"},
		{prefix("/api/user/"), "/api/user/ /api/user/1", "/api/user /api/username"},
		{prefix("/"), "/ /a /a/b *", ""},
		{expression("^/v[0-9]+/"), "/v1/x /v22/ /v1;x/y", "/x/v1/ /v1 /vx/"},
		{expression("[.]png$"), "/a.png /b/c.png;x", "/a.png/"},
		{named("every", func(*route.Rule) {}), "/ /a/b *", ""},
		{path("/caf%c3%a9"), "/caf%C3%A9 /caf%c3%a9 /caf\xc3\xa9", "/cafe"},
		{path("/café"), "/caf%C3%A9 /caf\xc3\xa9", "/cafe"},
		{path("/%61b%2fc"), "/ab%2Fc /ab%2fc", "/ab/c"},
		{path("/a b"), "/a%20b", "/ab"},
		{path("/%2A"), "/%2a", "/x"},
	} {
		table := table(t, c.rule)
		for _, p := range strings.Fields(c.yes) {
			if match(t, table, exchange(p)) == "" {
				t.Errorf("%s does not take %q", c.rule.Route.Name, p)
			}
		}
		for _, p := range strings.Fields(c.not) {
			if match(t, table, exchange(p)) != "" {
				t.Errorf("%s takes %q", c.rule.Route.Name, p)
			}
		}
	}
}

func TestMoreSpecificPathsGoFirst(t *testing.T) {
	rules := []route.Rule{
		path("/api/user/me"), path("/api/user/{id}"), path("/api/user/*"), path("/api/{kind}/9"), path("/api/*/9"),
		prefix("/api/user/"), path("/api/user/**"), path("/api/{kind}/x/**"), prefix("/api"), expression("^/(api|web)"),
		path("/**/last"), path("/**"),
	}
	for _, order := range []string{"as written", "reversed"} {
		if order == "reversed" {
			slices.Reverse(rules)
		}
		table := table(t, rules...)
		for _, c := range []struct{ path, want string }{
			{"/api/user/me", "/api/user/me"},
			{"/api/user/1", "/api/user/{id}"},
			{"/api/user/9", "/api/user/{id}"},
			{"/api/order/9", "/api/{kind}/9"},
			{"/api/user", "/api/user/**"},
			{"/api/user/", "/api/user/"},
			{"/api/user/1/2", "/api/user/"},
			{"/api/order/x/y", "/api/{kind}/x/**"},
			{"/api/order/y", "/api"},
			{"/api", "/api"},
			{"/web/last", "^/(api|web)"},
			{"/other/last", "/**/last"},
			{"/other", "/**"},
		} {
			if got := match(t, table, exchange(c.path)); got != c.want {
				t.Errorf("%s: %s goes to %q, want %q", order, c.path, got, c.want)
			}
		}
	}
}

func TestLongPathsMatch(t *testing.T) {
	deep := strings.Repeat("/s", 20)
	rules := []route.Rule{path(deep), path(deep + "/*/end"), prefix(deep + "/x"), prefix(deep[:2*12]), prefix("/s/s"), path("/s/*/s/**")}
	table := table(t, rules...)
	for _, c := range []struct{ path, want string }{
		{deep, deep},
		{deep + "/s/end", deep + "/*/end"},
		{deep + "/x/end", deep + "/*/end"},
		{deep + "/x/y", deep + "/x"},
		{deep + "/y", deep[:2*12]},
		{deep[:2*12], deep[:2*12]},
		{deep[:2*11], "/s/s"},
		{"/s/t" + deep, "/s/*/s/**"},
		{deep + strings.Repeat("/s", 2000), deep[:2*12]},
	} {
		if got := match(t, table, exchange(c.path)); got != c.want {
			t.Errorf("%.60s goes to %q, want %q", c.path, got, c.want)
		}
	}
}

func TestHostsMatch(t *testing.T) {
	table := table(t, host("api.example.com", "/**"), host("*.example.com", "/**"), host("*.eu.example.com", "/**"),
		host("[::1]", "/**"), host("2001:DB8::0:1", "/**"), host("10.0.0.1", "/**"), path("/**"))
	for _, c := range []struct{ host, want string }{
		{"api.example.com", "api.example.com/**"},
		{"API.Example.COM:8080", "api.example.com/**"},
		{"api.example.com.", "api.example.com/**"},
		{"api.example.com.:443", "api.example.com/**"},
		{"www.example.com", "*.example.com/**"},
		{"x.api.example.com", "*.example.com/**"},
		{"a.b.eu.example.com", "*.eu.example.com/**"},
		{"eu.example.com", "*.example.com/**"},
		{"example.com", "/**"},
		{".example.com", "/**"},
		{"badexample.com", "/**"},
		{"[::1]:8080", "[::1]/**"},
		{"[0:0::0:1]", "[::1]/**"},
		{"[2001:db8::1]", "2001:DB8::0:1/**"},
		{"[::1%25eth0]", "/**"},
		{"[::1", "/**"},
		{"10.0.0.1:80", "10.0.0.1/**"},
		{"", "/**"},
		{":80", "/**"},
		{"\x80\xff", "/**"},
		{strings.Repeat("a.", 4000) + "example.com", "/**"},
	} {
		x := exchange("/")
		x.Request.Host = []byte(c.host)
		if got := match(t, table, x); got != c.want {
			t.Errorf("host %q goes to %q, want %q", c.host, got, c.want)
		}
	}
}

func TestHostFallsBackToLessSpecificOnes(t *testing.T) {
	table := table(t,
		named("exact", func(r *route.Rule) {
			r.Hosts, r.Path, r.Methods = []string{"a.x.com", "b.x.com"}, "/p", []string{"POST"}
		}),
		named("suffix", func(r *route.Rule) { r.Hosts, r.PathPrefix = []string{"*.x.com"}, "/p" }),
		named("none", func(r *route.Rule) { r.Path = "/p/q" }))
	for _, c := range []struct{ host, method, path, want string }{
		{"a.x.com", "POST", "/p", "exact"},
		{"b.x.com", "POST", "/p", "exact"},
		{"a.x.com", "GET", "/p", "suffix"},
		{"a.x.com", "GET", "/p/q", "suffix"},
		{"x.com", "GET", "/p/q", "none"},
		{"a.x.com", "GET", "/q", ""},
	} {
		x := exchange(c.path)
		x.Request.Host, x.Request.Method = []byte(c.host), c.method
		if got := match(t, table, x); got != c.want {
			t.Errorf("%+v goes to %q", c, got)
		}
	}
}

func TestParamsHoldWhatNamesStoodFor(t *testing.T) {
	table := table(t, path("/t/{team}/u/{user}"), path("/d/{drive}/**"), path("/f/**/{file}"), path("/x/{a}/**/y/{b}/z"))
	x := exchange("")
	for _, c := range []struct{ path, want string }{
		{"/t/red;x=1/u/%2f~", "team=red user=%2f~"},
		{"/d/c/e/f", "drive=c"},
		{"/d/c;q", "drive=c"},
		{"/f/a/b/c.txt;v=2", "file=c.txt"},
		{"/f/c%c3.txt", "file=c%c3.txt"},
		{"/x/1/y/2/y/3/z", "a=1 b=3"},
		{"/none", ""},
	} {
		x.Request.Path = []byte(c.path)
		match(t, table, x)
		var got []string
		for _, p := range x.Request.Params {
			got = append(got, p.Name+"="+string(p.Value))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: params %q, want %q", c.path, s, c.want)
		}
	}
}

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

func TestMatchAllocatesNothing(t *testing.T) {
	yes := true
	table := table(t, path("/a/b"), path("/a/{id}"), path("/c/**"), host("*.x.com", "/a/*/c"), path("/q"),
		named("p", func(r *route.Rule) {
			r.Path, r.Methods, r.Clients = "/p", []string{"GET"}, []string{"10.0.0.0/8"}
			r.Headers = []route.Condition{{Key: "X-A", OneOf: []string{"1"}}}
			r.Query = []route.Condition{{Key: "q", OneOf: []string{"1"}}}
			r.Cookies = []route.Condition{{Key: "c", Exists: &yes}}
		}))
	for _, target := range []string{"/a/b", "/a/1", "/c/d/e", "/a/x/c", "/q", "/p?z=1&q=1", "/a/%2f;x", "/nothing"} {
		x := exchange(target)
		x.Request.Host = []byte("WWW.x.com:80")
		x.Request.ClientIP = netip.MustParseAddr("10.0.0.1")
		x.Request.Header.Add("x-a", "1")
		x.Request.Header.Add("cookie", "c=1")
		if target != "/nothing" && match(t, table, x) == "" {
			t.Errorf("%s goes nowhere", target)
		}
		if n := testing.AllocsPerRun(200, func() { table.Match(x, nil) }); n >= 1 {
			t.Errorf("%s: %v allocations", target, n)
		}
	}
}

var errGone = errors.New("gone")

func withBody(x *core.Exchange, kind, body string, length int64) *core.Exchange {
	x.Request.Header.Add("Content-Type", kind)
	x.Request.Body.Attach(strings.NewReader(body), length)
	return x
}

func TestBodyFieldsAreTested(t *testing.T) {
	yes, no := true, false
	const kind = "application/json"
	long := `{"env":"canary","pad":"` + strings.Repeat("x", 100) + `"}`
	for _, c := range []struct {
		test       route.Condition
		kind, body string
		want       bool
	}{
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, kind, `{"env":"canary"}`, true},
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, "Application/JSON; charset=utf-8", `{"env":"c\u0061nary"}`, true},
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, "application/vnd.x+json", `{"env":"canary"}`, true},
		{route.Condition{Key: "user.tags.1", Matches: "^b"}, kind, `{"user":{"tags":["a","bc"]}}`, true},
		{route.Condition{Key: "n", OneOf: []string{"12"}}, kind, `{"n":12}`, true},
		{route.Condition{Key: "b", OneOf: []string{"true"}}, kind, `{"b":true}`, true},
		{route.Condition{Key: "env", Exists: &yes}, kind, `{"env":null}`, true},
		{route.Condition{Key: "env", OneOf: []string{""}}, kind, `{"env":null}`, false},
		{route.Condition{Key: "env", Exists: &no}, kind, `[1]`, true},
		{route.Condition{Key: "env", Exists: &no}, kind, `{"env":1}`, false},
		{route.Condition{Key: "env", Exists: &no}, "text/plain", `{}`, false},
		{route.Condition{Key: "env", Exists: &no}, "", `{}`, false},
		{route.Condition{Key: "env", Exists: &no}, kind, ``, false},
		{route.Condition{Key: "env", Exists: &no}, kind, `{"a":`, false},
		{route.Condition{Key: "env", Exists: &yes}, kind, `{"env":1} x`, false},
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, kind, long, false},
		{route.Condition{Key: "0", Exists: &yes}, kind, strings.Repeat("[", 200_000), false},
	} {
		for _, length := range []int64{int64(len(c.body)), -1} {
			r := path("/")
			r.Route.BodyBuffer = 64
			if strings.HasPrefix(c.body, "[[") {
				r.Route.BodyBuffer = 1 << 20
			}
			r.Body = []route.Condition{c.test}
			x := withBody(exchange("/"), c.kind, c.body, length)
			if got := match(t, table(t, r), x) != ""; got != c.want {
				t.Errorf("%+v of %s %.40q, length %d: %v", c.test, c.kind, c.body, length, got)
			}
			if left, err := io.ReadAll(&x.Request.Body); string(left) != c.body || err != nil {
				t.Errorf("%.40q goes on as %.40q, %v", c.body, left, err)
			}
		}
	}
}

func TestCompressedBodyIsNotRead(t *testing.T) {
	r := path("/")
	yes := true
	r.Body = []route.Condition{{Key: "a", Exists: &yes}}
	x := withBody(exchange("/"), "application/json", `{"a":1}`, -1)
	x.Request.Header.Add("Content-Encoding", "gzip")
	if match(t, table(t, r), x) != "" || x.Request.Body.Taken() > 0 {
		t.Error("a compressed body was read")
	}
}

func TestBodyIsReadOnlyWhenARouteNeedsIt(t *testing.T) {
	yes := true
	field := func(key string) []route.Condition { return []route.Condition{{Key: key, Exists: &yes}} }
	table := table(t,
		named("a", func(r *route.Rule) { r.Path, r.Methods, r.Body = "/p", []string{"POST"}, field("a") }),
		named("b", func(r *route.Rule) { r.Path, r.Methods, r.Body = "/p", []string{"POST"}, field("b") }),
		path("/p"), path("/q"))
	for _, c := range []struct {
		method, path, kind string
		length             int64
		want               string
		asked              int
	}{
		{"POST", "/p", "application/json", -1, "b", 1},
		{"POST", "/p", "application/json", 7, "b", 1},
		{"POST", "/p", "application/json", 2 << 20, "/p", 0},
		{"POST", "/p", "text/plain", -1, "/p", 0},
		{"PUT", "/p", "application/json", -1, "/p", 0},
		{"POST", "/q", "application/json", -1, "/q", 0},
	} {
		x := withBody(exchange(c.path), c.kind, `{"b":1}`, c.length)
		x.Request.Method = c.method
		asked := 0
		rt, err := table.Match(x, func() error {
			if asked++; x.Request.Body.Taken() > 0 {
				t.Error("read before the client was told to send")
			}
			return nil
		})
		if err != nil || rt.Name != c.want || asked != c.asked || (x.Request.Body.Taken() > 0) != (asked > 0) {
			t.Errorf("%+v: %v, %v, asked %d times, %d bytes read", c, rt, err, asked, x.Request.Body.Taken())
		}
	}
}

func TestRequestWithoutBodyIsNotAsked(t *testing.T) {
	yes := true
	table := table(t, named("a", func(r *route.Rule) { r.Body = []route.Condition{{Key: "a", Exists: &yes}} }))
	x := exchange("/")
	x.Request.Header.Add("Content-Type", "application/json")
	rt, err := table.Match(x, func() error { t.Error("asked"); return nil })
	if rt != nil || err != nil {
		t.Errorf("%v, %v", rt, err)
	}
}

func TestFaultWhileReadingEndsTheSearch(t *testing.T) {
	yes := true
	table := table(t, path("/**"), named("b", func(r *route.Rule) { r.Path, r.Body = "/p", []route.Condition{{Key: "a", Exists: &yes}} }))
	x := exchange("/p")
	x.Request.Header.Add("Content-Type", "application/json")
	x.Request.Body.Attach(io.MultiReader(strings.NewReader(`{"a`), faulty{}), -1)
	if rt, err := table.Match(x, nil); rt != nil || !errors.Is(err, errGone) {
		t.Errorf("cut body: %v, %v", rt, err)
	}
	x = withBody(exchange("/p"), "application/json", `{"a":1}`, -1)
	if rt, err := table.Match(x, func() error { return errGone }); rt != nil || !errors.Is(err, errGone) {
		t.Errorf("client gone before 100: %v, %v", rt, err)
	}
	x = withBody(exchange("/p"), "application/json", `{"a":1}`, -1)
	x.Request.Body.Max = 3
	if rt, err := table.Match(x, nil); rt == nil || rt.Name != "/**" || err != nil {
		t.Errorf("body over max_body: %v, %v", rt, err)
	}
}

type faulty struct{}

func (faulty) Read([]byte) (int, error) { return 0, errGone }
