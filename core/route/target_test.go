package route_test

import (
	"regexp"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

func TestTargetStripsAndRewrites(t *testing.T) {
	strip := func(n int) core.Route { return core.Route{StripSegments: n} }
	cut := func(prefix string) core.Route { return core.Route{StripPrefix: prefix} }
	rewrite := func(pattern, to string) core.Route {
		return core.Route{Rewrite: regexp.MustCompile(pattern), RewriteTo: to}
	}
	with := func(rt core.Route, policy core.PathPolicy) core.Route { rt.Path = policy; return rt }
	for _, c := range []struct {
		route     core.Route
		raw, want string
	}{
		{core.Route{}, "/api/queues/%2F/q", "/api/queues/%2F/q"},
		{core.Route{}, "/a%2fb%20c%7Ed%E9", "/a%2fb%20c%7Ed%E9"},
		{core.Route{}, "*", "*"},
		{strip(1), "*", "*"},
		{strip(1), "/api/queues/%2F/q", "/queues/%2F/q"},
		{strip(1), "/api/a%2fb%20c%7Ed%E9;x=1/", "/a%2fb%20c%7Ed%E9;x=1/"},
		{strip(2), "/api/user/123", "/123"},
		{strip(2), "/api/user/", "/"},
		{strip(2), "/api/user", "/"},
		{strip(2), "/api", "/"},
		{strip(2), "/%61pi/us%65r/%31", "/%31"},
		{cut("/api"), "/api/a%2fb", "/a%2fb"},
		{cut("/api"), "/api", "/"},
		{cut("/api/"), "/api/", "/"},
		{cut("/api"), "/apis/x", "/apis/x"},
		{cut("/api/v1"), "/api", "/api"},
		{cut("/api"), "/%61pi;v=2/x", "/x"},
		{cut("/%61%2fb"), "/a%2Fb/x", "/x"},
		{cut("/"), "/x", "/x"},
		{rewrite("^/old/(.*)$", "/new/$1"), "/old/a%2fb%7E", "/new/a%2fb%7E"},
		{rewrite("^/old/(.*)$", "/new/$1"), "/%6fld/%7Ex", "/new/%7Ex"},
		{rewrite("^/old/(.*)$", "/new/$1"), "/other", "/other"},
		{rewrite("^/old", ""), "/old/%7E", "/%7E"},
		{rewrite("^/old/", ""), "/old/x", "/x"},
		{rewrite("^.*$", ""), "/old/x", "/"},
		{rewrite("-", "_"), "/a-%2D/%41-b", "/a__/%41_b"},
		{rewrite("^/(?P<a>[^/]+)/(x)?(y)?", "/${a}1$2$3"), "/%61%2f/y", "/%61%2f1y"},
		{core.Route{StripSegments: 1, Rewrite: regexp.MustCompile("^/a"), RewriteTo: "/b"}, "/api/a/c", "/b/c"},
		{with(core.Route{}, core.PathRaw), "/a/../b//c", "/a/../b//c"},
		{with(strip(1), core.PathRaw), "/a/../b//c", "/c"},
		{with(strip(1), core.PathNormalise), "/a/../b//%63", "/%63"},
	} {
		p, err := route.Canonical([]byte(c.raw), nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := p.Under(c.route.Path)
		if err != nil {
			t.Fatal(err)
		}
		before := string(raw) + string(p.Seen)
		if got := route.Target(&c.route, raw, p.Seen, nil); string(got) != c.want {
			t.Errorf("%+v of %q is %q, want %q", c.route, c.raw, got, c.want)
		}
		if string(raw)+string(p.Seen) != before {
			t.Errorf("%q was changed", c.raw)
		}
	}
}

func TestTargetCopiesNothingWithoutRewrite(t *testing.T) {
	raw := []byte("/api/user/%2f")
	for _, rt := range []core.Route{{}, {StripSegments: 2}, {StripSegments: 9}} {
		if n := testing.AllocsPerRun(100, func() { route.Target(&rt, raw, raw, nil) }); n != 0 {
			t.Errorf("%+v: %v allocations", rt, n)
		}
	}
}

func TestStripPrefixTrueTakesTheMatchedPrefix(t *testing.T) {
	for _, c := range []struct {
		rule route.Rule
		n    int
		ok   bool
	}{
		{path("/api/user/**"), 2, true},
		{path("/t/{team}/**"), 2, true},
		{path("/a/**/b"), 1, true},
		{path("/**"), 0, true},
		{prefix("/api/user"), 2, true},
		{prefix("/api/user/"), 2, true},
		{prefix("/"), 0, true},
		{path("/api/user"), 0, false},
		{path("/api/{id}"), 0, false},
		{expression("^/api"), 0, false},
		{route.Rule{}, 0, true},
	} {
		if n, ok := c.rule.PrefixSegments(); ok != c.ok || ok && n != c.n {
			t.Errorf("%q%q: %d, %v", c.rule.Path, c.rule.PathPrefix, n, ok)
		}
	}
}
