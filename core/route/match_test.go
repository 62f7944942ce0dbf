package route_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

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
