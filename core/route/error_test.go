package route_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/moongate/moongate/core/route"
)

func TestFaultyRulesAreRefused(t *testing.T) {
	yes := true
	for _, c := range []struct {
		set       func(*route.Rule)
		key, want string
	}{
		{func(r *route.Rule) { r.Path = "api" }, "path", "slash"},
		{func(r *route.Rule) { r.Path = "/a/../b" }, "path", "dot segment"},
		{func(r *route.Rule) { r.Path = "/a//b" }, "path", "empty segment"},
		{func(r *route.Rule) { r.Path = "/a?b" }, "path", "byte"},
		{func(r *route.Rule) { r.Path = "/a%zz" }, "path", "percent"},
		{func(r *route.Rule) { r.Path = "/a;v=1" }, "path", "parameters"},
		{func(r *route.Rule) { r.Path = "/a*" }, "path", "whole segments"},
		{func(r *route.Rule) { r.Path = "/a/x{id}" }, "path", "whole segments"},
		{func(r *route.Rule) { r.Path = "/{1}" }, "path", "name"},
		{func(r *route.Rule) { r.Path = "/{}" }, "path", "name"},
		{func(r *route.Rule) { r.Path = "/{a}/{a}" }, "path", "twice"},
		{func(r *route.Rule) { r.Path = "/**/**" }, "path", "**"},
		{func(r *route.Rule) { r.PathPrefix = "/a/*" }, "path_prefix", "literal"},
		{func(r *route.Rule) { r.PathRegex = "(" }, "path_regex", "missing"},
		{func(r *route.Rule) { r.Path, r.PathPrefix = "/a", "/a" }, "path", "only one"},
		{func(r *route.Rule) { r.Hosts = []string{"*"} }, "host", "every host"},
		{func(r *route.Rule) { r.Hosts = []string{"a.*.com"} }, "host", "start"},
		{func(r *route.Rule) { r.Hosts = []string{"a.com:80"} }, "host", "port"},
		{func(r *route.Rule) { r.Hosts = []string{""} }, "host", "no host"},
		{func(r *route.Rule) { r.Hosts = []string{"a b"} }, "host", "no host"},
		{func(r *route.Rule) { r.Hosts = []string{"bücher.de"} }, "host", "xn--"},
		{func(r *route.Rule) { r.Hosts = []string{"fe80::1%eth0"} }, "host", "zone"},
		{func(r *route.Rule) { r.Methods = []string{"get"} }, "method", `"GET"`},
		{func(r *route.Rule) { r.Methods = []string{"G T"} }, "method", "no method"},
		{func(r *route.Rule) { r.Clients = []string{"10.0.0.0/33"} }, "client", "CIDR"},
		{func(r *route.Rule) { r.Headers = []route.Condition{{Key: "X", Matches: "("}} }, "header.X", "matches"},
		{func(r *route.Rule) { r.Headers = []route.Condition{{Key: "X Y", Exists: &yes}} }, "header.X Y", "header name"},
		{func(r *route.Rule) { r.Query = []route.Condition{{Key: "q"}} }, "query.q", "exactly one"},
		{func(r *route.Rule) { r.Query = []route.Condition{{Key: "q", Exists: &yes, Matches: "x"}} }, "query.q", "exactly one"},
		{func(r *route.Rule) { r.Query = []route.Condition{{Exists: &yes}} }, "query.", "name"},
		{func(r *route.Rule) { r.Cookies = []route.Condition{{Key: "a=b", Exists: &yes}} }, "cookie.a=b", "cookie name"},
		{func(r *route.Rule) { r.Body = []route.Condition{{Key: "a", OneOf: []string{}}} }, "body.a", "exactly one"},
		{func(r *route.Rule) { r.Body = []route.Condition{{Exists: &yes}} }, "body.", "path"},
		{func(r *route.Rule) { w := -1; r.Weight = &w }, "weight", "from 0"},
		{func(r *route.Rule) { r.Time.After = "tomorrow" }, "time.after", "2026"},
		{func(r *route.Rule) { r.Time.Before = "x" }, "time.before", "2026"},
		{func(r *route.Rule) { r.Time.After, r.Time.Before = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z" }, "time.before", "never"},
		{func(r *route.Rule) { r.Time.Daily = "8-18" }, "time.daily", "08:00"},
		{func(r *route.Rule) { r.Time.Daily = "08:00-08:00" }, "time.daily", "08:00"},
		{func(r *route.Rule) { r.Time.Daily, r.Time.Zone = "08:00-09:00", "Mars/Olympus" }, "time.zone", "zone"},
		{func(r *route.Rule) { r.Time.Zone = "Europe/Berlin" }, "time.zone", "daily"},
		{func(r *route.Rule) { r.Route.StripPrefix = "api" }, "strip_prefix", "slash"},
		{func(r *route.Rule) { r.Route.StripSegments = -1 }, "strip_prefix", "-1"},
		{func(r *route.Rule) { r.Route.StripSegments, r.Route.StripPrefix = 1, "/a" }, "strip_prefix", "either"},
		{func(r *route.Rule) { r.Route.Rewrite, r.Route.RewriteTo = regexp.MustCompile("(a)"), "/$1x" }, "rewrite.to", "${1}"},
		{func(r *route.Rule) { r.Route.Rewrite, r.Route.RewriteTo = regexp.MustCompile("(a)"), "/$2" }, "rewrite.to", "no group $2"},
		{func(r *route.Rule) { r.Route.Rewrite, r.Route.RewriteTo = regexp.MustCompile("(a)"), "/a?$1" }, "rewrite.to", "'?'"},
	} {
		_, err := route.New([]route.Rule{path("/fine"), named("bad", c.set)})
		var fault *route.Error
		if !errors.As(err, &fault) {
			t.Errorf("%s, %s: taken", c.key, c.want)
			continue
		}
		if fault.Rule != 1 || fault.Name != "bad" || fault.Key != c.key || !strings.Contains(fault.Want, c.want) || fault.Other != -1 {
			t.Errorf("want %q about %q, got %#v", c.key, c.want, fault)
		}
	}
}

func TestRewriteMayReferToItsGroups(t *testing.T) {
	r := path("/a")
	r.Route.Rewrite, r.Route.RewriteTo = regexp.MustCompile("(?P<x>a)(b)"), "/$0/$x/${2}y/$$"
	if _, err := route.New([]route.Rule{r}); err != nil {
		t.Error(err)
	}
}

func TestAllFaultsAreTold(t *testing.T) {
	_, err := route.New([]route.Rule{path("a"), path("/b"), path("c")})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 2 {
		t.Fatalf("got %v, want two errors", err)
	}
	if want := `route "a": path: "a" does not start with a slash`; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestRoutesThatCannotBeToldApartAreRefused(t *testing.T) {
	yes, w := true, 1
	for _, c := range []struct {
		name    string
		a, b    func(*route.Rule)
		refused bool
	}{
		{"one path", func(r *route.Rule) { r.Path = "/p" }, func(r *route.Rule) { r.Path = "/p" }, true},
		{"one path in two encodings", func(r *route.Rule) { r.Path = "/p%2f" }, func(r *route.Rule) { r.Path = "/%70%2F" }, true},
		{"two names for one segment", func(r *route.Rule) { r.Path = "/{a}" }, func(r *route.Rule) { r.Path = "/{b}" }, true},
		{"a name and a star", func(r *route.Rule) { r.Path = "/{a}" }, func(r *route.Rule) { r.Path = "/*" }, false},
		{"one prefix in two spellings", func(r *route.Rule) { r.Path = "/p/**" }, func(r *route.Rule) { r.PathPrefix = "/p" }, true},
		{"prefix with and without slash", func(r *route.Rule) { r.PathPrefix = "/p/" }, func(r *route.Rule) { r.PathPrefix = "/p" }, false},
		{"every path", func(r *route.Rule) { r.Path = "/**" }, func(r *route.Rule) {}, true},
		{"one expression", func(r *route.Rule) { r.PathRegex = "^/a" }, func(r *route.Rule) { r.PathRegex = "^/a" }, true},
		{"two expressions", func(r *route.Rule) { r.PathRegex = "^/a" }, func(r *route.Rule) { r.PathRegex = "^/b" }, false},
		{"a priority", func(r *route.Rule) { r.Path = "/p" }, func(r *route.Rule) { r.Path, r.Priority = "/p", 1 }, false},
		{"one shared host", func(r *route.Rule) { r.Hosts = []string{"a.com", "b.com"} }, func(r *route.Rule) { r.Hosts = []string{"B.com."} }, true},
		{"two hosts", func(r *route.Rule) { r.Hosts = []string{"a.com"} }, func(r *route.Rule) { r.Hosts = []string{"*.a.com"} }, false},
		{"methods in another order", func(r *route.Rule) { r.Methods = []string{"GET", "PUT"} }, func(r *route.Rule) { r.Methods = []string{"PUT", "GET"} }, true},
		{"methods", func(r *route.Rule) { r.Methods = []string{"GET"} }, func(r *route.Rule) { r.Methods = []string{"PUT"} }, false},
		{"header in another case", func(r *route.Rule) { r.Headers = []route.Condition{{Key: "X-A", Exists: &yes}} },
			func(r *route.Rule) { r.Headers = []route.Condition{{Key: "x-a", Exists: &yes}} }, true},
		{"header values", func(r *route.Rule) { r.Headers = []route.Condition{{Key: "X-A", OneOf: []string{"1"}}} },
			func(r *route.Rule) { r.Headers = []route.Condition{{Key: "X-A", OneOf: []string{"2"}}} }, false},
		{"networks", func(r *route.Rule) { r.Clients = []string{"10.1.0.0/8"} }, func(r *route.Rule) { r.Clients = []string{"10.0.0.0/8"} }, true},
		{"times", func(r *route.Rule) { r.Time.After = "2026-01-01T01:00:00+01:00" }, func(r *route.Rule) { r.Time.After = "2026-01-01T00:00:00Z" }, true},
		{"times in two zones", func(r *route.Rule) { r.Time.Daily = "08:00-09:00" }, func(r *route.Rule) { r.Time.Daily, r.Time.Zone = "08:00-09:00", "Asia/Tokyo" }, false},
		{"weights", func(r *route.Rule) { r.Weight = &w }, func(r *route.Rule) { r.Weight = &w }, false},
		{"one weight", func(r *route.Rule) { r.Weight = &w }, func(r *route.Rule) {}, true},
	} {
		_, err := route.New([]route.Rule{named("first", c.a), path("/other"), named("second", c.b)})
		var fault *route.Error
		if errors.As(err, &fault) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.refused && (fault.Rule != 2 || fault.Other != 0 || !strings.Contains(err.Error(), `"first"`) || !strings.Contains(err.Error(), `"second"`)) {
			t.Errorf("%s: %v does not say which", c.name, err)
		}
	}
}
